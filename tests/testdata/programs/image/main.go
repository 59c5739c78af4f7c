// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// One image variant made from the component alone. Settings say whose: cluster names it, and asks says whether the component
// is told how Proxmox VE is asked.
package main

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/config"

	"github.com/talos-proxmox/talos-proxmox/components"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

func main() { pulumi.Run(run) }

func run(ctx *pulumi.Context) error {
	settings := config.New(ctx, "")
	cfg := spec.Config{Proxmox: spec.Proxmox{
		Endpoint: spec.Ptr("https://pve1.example.com:8006"), Hosts: map[string]spec.Host{"pve1": {Datastore: spec.Ptr("local-lvm")}},
	}}.WithDefaults()
	proxmox, err := components.NewProxmoxProvider(ctx, "proxmox", &components.ProxmoxProviderArgs{Settings: cfg.Proxmox})
	if err != nil {
		return err
	}
	args := components.TalosImageArgs{
		ClusterName: settings.Require("cluster"), Variant: spec.DefaultImage, TalosVersion: "v1.12.4",
		Targets: []components.ImageTarget{{Host: "pve1", Datastore: "local", Hosts: []string{"pve1"}}},
	}
	if settings.RequireBool("asks") {
		args.Proxmox = cfg.Proxmox
	}
	_, err = components.NewTalosImage(ctx, "image", &args, pulumi.Providers(proxmox))

	return err
}
