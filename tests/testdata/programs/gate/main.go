// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Three control planes made from the components alone. Settings say what is tried: memory is that of every
// machine, talos the version that every node runs, label what each Node is marked with, and mode is "guarded", "hurried" for the same
// with little time, "open" for machines without the gate's hooks, "first" for one whose own hook fails before the
// gate's, and "second" for one whose own hook fails behind it.
package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/config"

	"github.com/talos-proxmox/talos-proxmox/components"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

const name = "trio"

func main() { pulumi.Run(run) }

// describe returns three schedulable control planes on one host.
func describe(memory int, talos, label, mode string) spec.Config {
	patience := 3 * time.Minute
	if mode == "second" || mode == "hurried" {
		patience = 10 * time.Second // who waits for a turn waits for all others
	}
	cfg := spec.Config{
		Proxmox: spec.Proxmox{
			Endpoint: spec.Ptr("https://pve1.example.com:8006"),
			Hosts:    map[string]spec.Host{"pve1": {Datastore: spec.Ptr("local-lvm")}},
		},
		Images:  map[string]spec.Image{spec.DefaultImage: {}},
		Cluster: spec.Cluster{Name: spec.Ptr(name), VIP: spec.Ptr("10.31.0.10"), AllowSchedulingOnControlPlanes: spec.Ptr(true)},
		Talos:   spec.Talos{Version: spec.Ptr(talos)},
		Lifecycle: spec.Lifecycle{
			ReadyTimeout: spec.Ptr(spec.Duration(patience)), DrainTimeout: spec.Ptr(spec.Duration(20 * time.Second)),
		},
	}
	for i := range 3 {
		node := spec.NamedNode{
			Name: fmt.Sprintf("trio-%d", i+1), Node: spec.Node{
				Role: spec.Ptr(spec.ControlPlane), Host: spec.Ptr("pve1"), VMID: spec.Ptr(311 + i),
				Networks: map[string]spec.Network{"lan": {
					Bridge:  spec.Ptr("vmbr0"),
					Address: spec.Ptr(fmt.Sprintf("10.31.0.%d/24", i+1)), Gateway: spec.Ptr("10.31.0.254"),
				}},
			},
		}
		node.Memory, node.Labels = spec.Ptr(spec.MiB(memory)), map[string]string{"example.com/tried": label}
		cfg.Nodes = append(cfg.Nodes, node)
	}

	return cfg.WithDefaults()
}

func run(ctx *pulumi.Context) error {
	settings := config.New(ctx, "")
	cfg := describe(settings.RequireInt("memory"), settings.Require("talos"), settings.Require("label"), settings.Require("mode"))

	proxmox, err := components.NewProxmoxProvider(ctx, "proxmox", &components.ProxmoxProviderArgs{Settings: cfg.Proxmox})
	if err != nil {
		return err
	}
	talos, err := components.NewTalosProvider(ctx, "talos", nil)
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
	secrets, err := components.NewTalosSecrets(ctx, name, &components.TalosSecretsArgs{Config: cfg}, providers)
	if err != nil {
		return err
	}

	machines := map[string]pulumi.Resource{}
	for i, node := range cfg.Nodes {
		file, err := img.FileID(*node.Host)
		if err != nil {
			return err
		}
		guard, err := hooks(ctx, secrets, node.Name, settings.Require("mode"), i)
		if err != nil {
			return err
		}
		machine, err := components.NewProxmoxNode(ctx, node.Name, &components.ProxmoxNodeArgs{
			Cluster: cfg.Cluster, Node: node, Image: cfg.Image(node), ImageFileID: file,
			Proxmox: cfg.Proxmox, Lifecycle: cfg.Lifecycle,
		}, providers, pulumi.DependsOn([]pulumi.Resource{secrets}), pulumi.ResourceHooks(guard))
		if err != nil {
			return err
		}
		machines[node.Name] = machine.VM
	}

	cluster, err := components.NewTalosCluster(ctx, name, &components.TalosClusterArgs{
		Config: cfg, Secrets: secrets, Machines: machines,
	}, providers)
	if err != nil {
		return err
	}
	ctx.Export("kubeconfig", cluster.Kubeconfig)

	return nil
}

// hooks returns those of the i-th machine.
func hooks(
	ctx *pulumi.Context, secrets *components.TalosSecrets, node, mode string, i int,
) (*pulumi.ResourceHookBinding, error) {
	if mode == "open" {
		return nil, nil
	}
	guard, err := secrets.VMHooks(node)
	if err != nil || i != 0 || mode == "guarded" || mode == "hurried" {
		return guard, err
	}
	own, err := ctx.RegisterResourceHook("own", func(*pulumi.ResourceHookArgs) error {
		return errors.New("somebody's own hook does not like it")
	}, nil)
	if err != nil {
		return nil, err
	}
	if mode == "first" {
		guard.BeforeUpdate = append([]*pulumi.ResourceHook{own}, guard.BeforeUpdate...)
	} else {
		guard.BeforeUpdate = append(guard.BeforeUpdate, own)
	}

	return guard, nil
}
