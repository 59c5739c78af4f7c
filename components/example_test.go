// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components"
	"github.com/talos-proxmox/talos-proxmox/internal/pulumitest"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// exampleConfig describes a cluster of one schedulable control plane; what it leaves out gets its default.
func exampleConfig() spec.Config {
	return spec.Config{
		Proxmox: spec.Proxmox{ // credentials come from PROXMOX_VE_API_TOKEN, or are inputs
			Endpoint: spec.Ptr("https://pve1.example.com:8006"),
			Hosts:    map[string]spec.Host{"pve1": {Datastore: spec.Ptr("local-lvm")}},
			APIToken: spec.Ptr(spec.NewSecret("pulumi@pve!talos=00000000-0000-0000-0000-000000000000")),
		},
		Cluster: spec.Cluster{Name: spec.Ptr("east")},
		Nodes: []spec.NamedNode{{Name: "east-cp", Node: spec.Node{
			Role: spec.Ptr(spec.ControlPlane), Host: spec.Ptr("pve1"), VMID: spec.Ptr(9101),
			Networks: map[string]spec.Network{"lan": {
				Bridge: spec.Ptr("vmbr0"), Address: spec.Ptr("10.77.0.11/24"), Gateway: spec.Ptr("10.77.0.1"),
			}},
		}}},
	}
}

// runExample runs a program as `pulumi preview` does, without an engine, and prints the names of what it registered of a
// type.
func runExample(typeToken string, program pulumi.RunFunc) {
	state, err := talosAnswers(true)
	if err != nil {
		fmt.Println(err)

		return
	}
	recorder := &pulumitest.Recorder{State: state}
	if err := recorder.Run(true, program); err != nil {
		fmt.Println(err)
	}
	fmt.Println(recorder.Names(typeToken))
}

// A whole cluster in one call, from Proxmox VE to git.
func ExampleNewCluster() {
	runExample("proxmoxve:VM/virtualMachine:VirtualMachine", func(ctx *pulumi.Context) error {
		cluster, err := components.NewCluster(ctx, "east", &components.ClusterArgs{Config: exampleConfig()})
		if err != nil {
			return err
		}
		ctx.Export("kubeconfig", cluster.Kubeconfig) // a secret

		return nil
	})
	// Output: [east-east-cp-vm]
}

// Everything wrong is found before anything is registered, and can be matched.
func ExampleClusterArgs_Check() {
	cfg := exampleConfig()
	cfg.Nodes[0].VMID = spec.Ptr(7)
	err := (&components.ClusterArgs{Config: cfg}).Check(context.Background(), "east")

	var invalid *spec.InvalidError
	if errors.As(err, &invalid) {
		for _, problem := range invalid.Problems {
			fmt.Println(problem.Path, problem.Message)
		}
	}
	// Output: nodes.east-cp.vmId 7 is too small: the least is 100
}

// The image that nodes boot: one download for each datastore.
func ExampleNewTalosImage() {
	runExample("talos:imageFactory/schematic:Schematic", func(ctx *pulumi.Context) error {
		cfg := exampleConfig().WithDefaults()
		_, err := components.NewTalosImage(ctx, "east", &components.TalosImageArgs{
			ClusterName: "east", Variant: spec.DefaultImage, TalosVersion: *cfg.Talos.Version,
			Image: spec.Image{Extensions: []string{"qemu-guest-agent"}}, Targets: components.ImageTargets(cfg, spec.DefaultImage),
		})

		return err
	})
	// Output: [east-schematic-ce4c980550dd]
}

// One VM. Its image is the file of a [components.TalosImage], or any other file of the host.
func ExampleNewProxmoxNode() {
	runExample("proxmoxve:VM/virtualMachine:VirtualMachine", func(ctx *pulumi.Context) error {
		cfg := exampleConfig().WithDefaults()
		_, err := components.NewProxmoxNode(ctx, "east-cp", &components.ProxmoxNodeArgs{
			Cluster: cfg.Cluster, Node: cfg.Nodes[0], Image: cfg.Images[spec.DefaultImage], Proxmox: cfg.Proxmox, Lifecycle: cfg.Lifecycle,
			ImageFileID: pulumi.String("local:iso/talos.iso"),
		})

		return err
	})
	// Output: [east-cp-vm]
}

// A cluster on machines that wait in Talos's maintenance mode, wherever they come from. Its secrets are made first where
// the machines' edits are to wait for one another.
func ExampleNewTalosCluster() {
	runExample("talos:machine/configurationApply:ConfigurationApply", func(ctx *pulumi.Context) error {
		cfg := exampleConfig()
		secrets, err := components.NewTalosSecrets(ctx, "east", &components.TalosSecretsArgs{Config: cfg})
		if err != nil {
			return err
		}
		cluster, err := components.NewTalosCluster(ctx, "east", &components.TalosClusterArgs{Config: cfg, Secrets: secrets})
		if err != nil {
			return err
		}
		ctx.Export("talosconfig", cluster.Talosconfig) // a secret

		return nil
	})
	// Output: [east-east-cp]
}

// exampleRepository is a public repository that a cluster follows.
func exampleRepository() spec.Git {
	return spec.Git{URL: spec.Ptr("https://git.example.com/team/clusters.git"), Path: spec.Ptr("clusters/east")}
}

// Flux in a cluster that this program or somebody else made.
func ExampleNewFluxBootstrap() {
	runExample("kubernetes:kustomize.toolkit.fluxcd.io/v1:Kustomization", func(ctx *pulumi.Context) error {
		_, err := components.NewFluxBootstrap(ctx, "flux", &components.FluxBootstrapArgs{
			ClusterName: "east", Kubeconfig: pulumi.String("…"), // of a stack reference, say
			GitOps: spec.GitOps{Provider: spec.Ptr("flux"), Git: exampleRepository()},
		})

		return err
	})
	// Output: [flux-kustomization]
}

// Argo CD likewise.
func ExampleNewArgoBootstrap() {
	runExample("kubernetes:argoproj.io/v1alpha1:Application", func(ctx *pulumi.Context) error {
		_, err := components.NewArgoBootstrap(ctx, "argocd", &components.ArgoBootstrapArgs{
			ClusterName: "east", Kubeconfig: pulumi.String("…"),
			GitOps: spec.GitOps{Provider: spec.Ptr("argocd"), Git: exampleRepository()},
		})

		return err
	})
	// Output: [argocd-application]
}
