// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components_test

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components"
	"github.com/talos-proxmox/talos-proxmox/internal/pulumitest"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// run runs a program without an engine, as these examples do; yours calls pulumi.Run.
func run(program pulumi.RunFunc) {
	var r pulumitest.Recorder
	if err := r.Run(true, program); err != nil {
		fmt.Println(err)
	}
}

// oneNode returns a cluster of one schedulable control plane.
func oneNode() spec.Config {
	return spec.Config{
		Proxmox: spec.Proxmox{
			Endpoint: spec.Ptr("https://pve.example.com:8006"),
			Hosts:    map[string]spec.Host{"pve": {Datastore: spec.Ptr("local-lvm")}},
		},
		Cluster: spec.Cluster{Name: spec.Ptr("edge")},
		Nodes: []spec.NamedNode{{Name: "cp-1", Node: spec.Node{
			Role: spec.Ptr(spec.ControlPlane), Host: spec.Ptr("pve"), VMID: spec.Ptr(101),
			Networks: map[string]spec.Network{"lan": {Address: spec.Ptr("10.0.0.11/24"), Gateway: spec.Ptr("10.0.0.1")}},
		}}},
	}
}

func ExampleNewCluster() {
	run(func(ctx *pulumi.Context) error {
		cluster, err := components.NewCluster(ctx, "edge", &components.ClusterArgs{Config: oneNode()})
		if err != nil {
			return err
		}
		ctx.Export("kubeconfig", cluster.Kubeconfig) // a secret

		return nil
	})
}

func ExampleNewTalosImage() {
	run(func(ctx *pulumi.Context) error {
		_, err := components.NewTalosImage(ctx, "gpu", &components.TalosImageArgs{
			ClusterName: "edge", Variant: "gpu", TalosVersion: "v1.12.4", Image: spec.Image{Extensions: []string{"i915"}},
			Targets: []components.ImageTarget{{Host: "pve", Datastore: "local", Hosts: []string{"pve"}}},
		})

		return err
	})
	// Output:
}

func ExampleNewProxmoxNode() {
	run(func(ctx *pulumi.Context) error {
		cfg := oneNode()
		node, err := components.NewProxmoxNode(ctx, "cp-1", &components.ProxmoxNodeArgs{
			Cluster: cfg.Cluster, Node: cfg.Nodes[0], Proxmox: cfg.Proxmox, ImageFileID: pulumi.String("local:iso/talos.iso"),
		})
		if err != nil {
			return err
		}
		ctx.Export("address", node.Address)

		return nil
	})
	// Output:
}

func ExampleNewTalosSecrets() {
	run(func(ctx *pulumi.Context) error {
		secrets, err := components.NewTalosSecrets(ctx, "edge", &components.TalosSecretsArgs{Config: oneNode()})
		if err != nil {
			return err
		}
		ctx.Export("talosconfig", secrets.Talosconfig) // a secret

		return nil
	})
	// Output:
}

func ExampleNewTalosCluster() {
	run(func(ctx *pulumi.Context) error {
		// Machines that are there already, in Talos's maintenance mode: on bare metal, say.
		cluster, err := components.NewTalosCluster(ctx, "edge", &components.TalosClusterArgs{Config: oneNode()})
		if err != nil {
			return err
		}
		ctx.Export("endpoint", cluster.Endpoint)

		return nil
	})
}

func ExampleNewFluxBootstrap() {
	run(func(ctx *pulumi.Context) error {
		flux, err := components.NewFluxBootstrap(ctx, "flux", &components.FluxBootstrapArgs{
			ClusterName: "edge", Kubeconfig: pulumi.String("the kubeconfig"),
			GitOps: spec.GitOps{Git: spec.Git{URL: spec.Ptr("https://git.example.com/lab/demo.git")}},
		})
		if err != nil {
			return err
		}
		ctx.Export("deployKey", flux.PublicKey)

		return nil
	})
	// Output:
}

func ExampleNewArgoBootstrap() {
	run(func(ctx *pulumi.Context) error {
		_, err := components.NewArgoBootstrap(ctx, "argocd", &components.ArgoBootstrapArgs{
			ClusterName: "edge", Kubeconfig: pulumi.String("the kubeconfig"),
			GitOps: spec.GitOps{Git: spec.Git{URL: spec.Ptr("https://git.example.com/lab/demo.git")}},
		})

		return err
	})
	// Output:
}
