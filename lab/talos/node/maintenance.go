// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"context"
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/config"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/disks"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/events"
)

// runMaintenance waits for a configuration from whoever asks first.
func (n *Node) runMaintenance(ctx context.Context) (guest.Exit, error) {
	end := n.VM.Trace.Begin("talos.maintenance", n.Object(), n.Attrs())
	cfg, exit, err := n.awaitConfig(ctx)
	end(err)
	if cfg == nil {
		return exit, err
	}

	if n.Disk == nil {
		return n.install(ctx, cfg)
	}

	data, err := cfg.Bytes()
	if err != nil {
		return guest.ExitReboot, fmt.Errorf("saving the configuration: %w", err)
	}
	if err := n.Disk.Update(func(in *disks.Installation) { in.Config = data }); err != nil {
		return guest.ExitReboot, err
	}
	n.setApplied()

	return n.runConfigured(ctx, cfg)
}

func (n *Node) awaitConfig(ctx context.Context) (config.Provider, guest.Exit, error) {
	got := make(chan config.Provider, 1)
	stop, err := n.Nodes.api.ServeMaintenance(n, got)
	if err != nil {
		return nil, guest.ExitHalt, err
	}
	defer stop()
	for _, id := range []string{"auditd", "containerd", "machined", "syslogd", "udevd"} {
		n.Services.Set(id, events.StateRunning, "Health check successful", true)
	}
	n.setStage(stageMaintenance, nil)

	for {
		select {
		case <-ctx.Done():
			return nil, guest.ExitPowerOff, ctx.Err()
		case cfg := <-got:
			return cfg, guest.ExitReboot, nil
		case r := <-n.requests:
			exit, err := r.Run(ctx, r.Actor)
			if exit != stays {
				return nil, exit, err
			}
		}
	}
}
