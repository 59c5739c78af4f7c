// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
	"github.com/siderolabs/talos/pkg/machinery/config"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/disks"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/etcd"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"
)

const (
	PullTime    = 15 * time.Second
	installTime = 20 * time.Second
	// installRetry is how long a node shows a failed installation before it starts again.
	installRetry = 30 * time.Second
	rebootTime   = 5 * time.Second
)

// install writes Talos and the configuration to the install disk and reboots.
func (n *Node) install(ctx context.Context, cfg config.Provider) (guest.Exit, error) {
	n.setStage(stageInstalling, nil)
	n.Events.Start("install", "")
	end := n.VM.Trace.Begin("talos.install", n.Object(), n.Attrs())
	err := n.writeInstallation(ctx, cfg)
	end(err)

	if err == nil {
		n.Events.Stop("install", "")
	} else {
		n.Events.Fail("install", "", err)
		n.setStage(stageInstalling, err)
		n.Console("install failed", "error", err)
		if n.VM.Clock.Sleep(ctx, installRetry) != nil {
			return guest.ExitPowerOff, ctx.Err()
		}

		return guest.ExitReboot, err
	}

	return n.rebootNow(ctx)
}

func (n *Node) writeInstallation(ctx context.Context, cfg config.Provider) error {
	if cfg.Machine() == nil {
		return errors.New("the configuration has no machine section")
	}
	in := machineconfig.Install(cfg)
	disk, err := n.installDisk(in)
	if err != nil {
		return err
	}

	img, err := n.Pull(ctx, in.Image())
	if err != nil {
		return err
	}
	if err := n.VM.Clock.Take(ctx, guest.StepInstall, strconv.Itoa(n.VM.VMID), installTime); err != nil {
		return err
	}

	data, err := cfg.Bytes()
	if err != nil {
		return fmt.Errorf("saving the configuration: %w", err)
	}
	s := &disks.System{Disk: disk}

	return s.Update(func(in *disks.Installation) {
		*in = disks.Installation{OS: disks.OsTalos, Active: n.OnDisk(img), Config: data, NodeID: etcd.NewID()}
	})
}

// OnDisk returns an installer's Talos as it runs from disk.
func (n *Node) OnDisk(img *guest.Image) guest.Image {
	out := *img
	out.Kind = "disk"
	if out.Platform == "" {
		out.Platform = n.Image.Platform
	}
	if out.Arch == "" {
		out.Arch = n.Image.Arch
	}

	return out
}

// installDisk finds the disk that the configuration names or selects.
func (n *Node) installDisk(in machineconfig.InstallTarget) (*guest.Disk, error) {
	devices := disks.List(n.VM)

	match, err := in.DiskMatchExpression()
	if err != nil {
		return nil, fmt.Errorf("failed to get disk match expression: %w", err)
	}
	if match != nil {
		for _, d := range devices {
			ok, err := match.EvalBool(celenv.DiskLocator(), map[string]any{"disk": d.Spec, "system_disk": false})
			if err != nil {
				return nil, fmt.Errorf("failed to evaluate disk selector: %w", err)
			}
			if ok && d.Disk != nil {
				return d.Disk, nil
			}
		}

		return nil, fmt.Errorf("no disks matched the expression: %s", match)
	}

	if d := disks.Find(devices, in.Disk()); d != nil && d.Disk != nil {
		return d.Disk, nil
	}

	return nil, fmt.Errorf("lstat %s: no such file or directory", in.Disk())
}
