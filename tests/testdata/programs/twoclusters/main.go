// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Two clusters of one node each in one program, made from the components alone.
package main

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		for i, name := range []string{"east", "west"} {
			if err := cluster(ctx, name, i); err != nil {
				return fmt.Errorf("cluster %q: %w", name, err)
			}
		}

		return nil
	})
}

// config is one schedulable control plane.
func config(name string, i int) spec.Config {
	return spec.Config{
		Proxmox: spec.Proxmox{
			Endpoint: spec.Ptr("https://host3.example.com:8006"),
			Hosts:    map[string]spec.Host{"host3": {Datastore: spec.Ptr("local-lvm")}},
		},
		Images:  map[string]spec.Image{spec.DefaultImage: {}},
		Cluster: spec.Cluster{Name: spec.Ptr(name)},
		Nodes: []spec.NamedNode{{
			Name: name + "-cp", Node: spec.Node{
				Role: spec.Ptr(spec.ControlPlane), Host: spec.Ptr("host3"), VMID: spec.Ptr(9100 + i),
				Networks: map[string]spec.Network{"lan": {
					Bridge:  spec.Ptr("vmbr0"),
					Address: spec.Ptr(fmt.Sprintf("10.77.0.%d/24", 11+i)), Gateway: spec.Ptr("10.77.0.1"),
				}},
			},
		}},
	}.WithDefaults()
}

func cluster(ctx *pulumi.Context, name string, i int) error {
	cfg := config(name, i)

	proxmox, err := components.NewProxmoxProvider(ctx, name+"-proxmox", cfg.Proxmox)
	if err != nil {
		return err
	}
	talos, err := components.NewTalosProvider(ctx, name+"-talos", nil)
	if err != nil {
		return err
	}
	providers := pulumi.Providers(proxmox, talos)

	img, err := components.NewTalosImage(ctx, name, &components.TalosImageArgs{
		ClusterName: name, Variant: spec.DefaultImage, TalosVersion: *cfg.Talos.Version,
		Image: cfg.Images[spec.DefaultImage], Targets: components.ImageTargets(cfg, spec.DefaultImage),
	}, providers)
	if err != nil {
		return err
	}

	node := cfg.Nodes[0]
	file, err := img.FileID(*node.Host)
	if err != nil {
		return err
	}
	machine, err := components.NewProxmoxNode(ctx, node.Name, &components.ProxmoxNodeArgs{
		Cluster: cfg.Cluster, Node: node, Image: cfg.Image(node), ImageFileID: file,
		Proxmox: cfg.Proxmox, Lifecycle: cfg.Lifecycle,
	}, providers)
	if err != nil {
		return err
	}

	made, err := components.NewTalosCluster(ctx, name, &components.TalosClusterArgs{
		Config: cfg, Machines: map[string]pulumi.Resource{node.Name: machine.VM},
	}, providers)
	if err != nil {
		return err
	}
	ctx.Export(name+"Kubeconfig", made.Kubeconfig)
	ctx.Export(name+"Endpoint", made.Endpoint)

	return nil
}
