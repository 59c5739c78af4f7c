// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// A program of one's own: two small Talos clusters made from the components, settings written in Go.
// Copy it into a module that requires github.com/talos-proxmox/talos-proxmox, and change describe.
package main

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

const host = "host3"

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		for i, name := range []string{"east", "west"} {
			if err := cluster(ctx, describe(name, i)); err != nil {
				return fmt.Errorf("cluster %q: %w", name, err)
			}
		}

		return nil
	})
}

// describe is a cluster of one schedulable control plane; what it leaves out gets its default. More
// nodes are more entries of Nodes.
func describe(name string, i int) spec.Config {
	return spec.Config{
		Proxmox: spec.Proxmox{ // credentials come from PROXMOX_VE_API_TOKEN, or are set here
			Endpoint: spec.Ptr("https://host3.example.com:8006"),
			Hosts:    map[string]spec.Host{host: {Datastore: spec.Ptr("local-lvm")}},
		},
		Images:  map[string]spec.Image{spec.DefaultImage: {Extensions: []string{"qemu-guest-agent", "iscsi-tools"}}},
		Cluster: spec.Cluster{Name: spec.Ptr(name)},
		Nodes: []spec.NamedNode{{
			Name: name + "-cp", Node: spec.Node{
				Role: spec.Ptr(spec.ControlPlane), Host: spec.Ptr(host), VMID: spec.Ptr(9100 + i),
				Networks: map[string]spec.Network{"lan": {
					Bridge:  spec.Ptr("vmbr0"),
					Address: spec.Ptr(fmt.Sprintf("10.77.0.%d/24", 11+i)), Gateway: spec.Ptr("10.77.0.1"),
				}},
			},
		}},
	}.WithDefaults()
}

// cluster makes the image, the machines and the cluster on them.
func cluster(ctx *pulumi.Context, cfg spec.Config) error {
	name := *cfg.Cluster.Name
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
	// the secrets come before the machines: with them, machines are guarded (edits that reboot wait for
	// one another, and a node that goes is drained and leaves etcd first)
	secrets, err := components.NewTalosSecrets(ctx, name, cfg, providers)
	if err != nil {
		return err
	}
	machines := map[string]pulumi.Resource{}
	for _, node := range cfg.Nodes {
		file, err := img.FileID(*node.Host)
		if err != nil {
			return err
		}
		guard, err := secrets.Guard(ctx, node.Name)
		if err != nil {
			return err
		}
		machine, err := components.NewProxmoxNode(ctx, node.Name, &components.ProxmoxNodeArgs{
			Cluster: cfg.Cluster, Node: node, Image: cfg.Image(node), ImageFileID: file,
			Proxmox: cfg.Proxmox, Lifecycle: cfg.Lifecycle,
			After: []pulumi.Resource{secrets}, Hooks: guard,
		}, providers)
		if err != nil {
			return err
		}
		machines[node.Name] = machine.VM
	}

	made, err := components.NewTalosCluster(ctx, name, &components.TalosClusterArgs{
		Config: cfg, Secrets: secrets, Machines: machines,
	}, providers)
	if err != nil {
		return err
	}
	ctx.Export(name+"Endpoint", made.Endpoint)
	ctx.Export(name+"Kubeconfig", made.Kubeconfig) // a secret
	ctx.Export(name+"Talosconfig", made.Talosconfig)

	return nil
}
