// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/compatibility"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/disks"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/etcd"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"
)

// UpgradeTime is what the installer takes.
const UpgradeTime = 25 * time.Second

// EtcdReadyForUpgrade reports whether etcd can spare this member.
func (n *Node) EtcdReadyForUpgrade() error {
	g, _ := n.Group()
	if g == nil {
		return fmt.Errorf("failed to create etcd client: %w", context.DeadlineExceeded)
	}
	v := g.View()
	if !v.Quorum {
		return fmt.Errorf("failed to acquire upgrade mutex: %w", etcd.ErrNoLeader)
	}
	if len(v.Members) == 2 {
		return fmt.Errorf("error validating etcd for upgrade: "+
			"etcd member count(%d) is insufficient to maintain quorum if upgrade commences", len(v.Members))
	}
	for _, m := range v.Members {
		if !v.Alive[m.ID] {
			return fmt.Errorf("error validating etcd for upgrade: etcd member %016x is not healthy; "+
				"all members must be healthy to perform an upgrade: context deadline exceeded", m.ID)
		}
	}

	return nil
}

// Upgrade returns the sequence that replaces the running Talos.
func (n *Node) Upgrade(next guest.Image) func(context.Context, string) (guest.Exit, error) {
	return func(ctx context.Context, actor string) (guest.Exit, error) {
		attrs := n.Attrs()
		attrs["to"], attrs["schematic"] = next.Talos, next.Schematic
		end := n.VM.Trace.Begin("talos.upgrade", n.Object(), attrs)
		n.Events.Start(SequenceUpgrade, actor)
		n.setStage(stageUpgrading, nil)
		if err := n.drain(ctx, actor); err != nil {
			err = failed(1, SequenceUpgrade, err)
			n.Events.Fail(SequenceUpgrade, actor, err)
			n.setStage(stageRebooting, nil)
			end(err)

			return stays, err
		}
		n.setKubelet(false)

		err := n.Events.Phase("upgrade", actor, func() error {
			if err := n.Preflight(next); err != nil {
				return err
			}
			if err := n.VM.Clock.Sleep(ctx, UpgradeTime); err != nil {
				return err
			}

			return n.SwitchTo(next)
		})
		if err != nil {
			n.Events.Fail(SequenceUpgrade, actor, err)
			n.Console("upgrade failed", "error", err)
		} else {
			n.Events.Stop(SequenceUpgrade, actor)
		}
		n.quiesce(actor)
		exit, sleepErr := n.rebootNow(ctx)
		end(errors.Join(err, sleepErr))

		return exit, sleepErr
	}
}

// Preflight returns the installer's own check: it knows which Talos it follows and which Kubernetes it
// runs.
func (n *Node) Preflight(next guest.Image) error {
	target, err := compatibility.ParseTalosVersion(&machine.VersionInfo{Tag: next.Talos})
	if err != nil {
		return fmt.Errorf("pre-flight checks failed: failed to parse installer Talos version: %w", err)
	}
	host, err := compatibility.ParseTalosVersion(&machine.VersionInfo{Tag: n.Image.Talos})
	if err != nil {
		return fmt.Errorf("pre-flight checks failed: failed to parse host Talos version: %w", err)
	}
	if err := target.UpgradeableFrom(host); err != nil {
		return fmt.Errorf("pre-flight checks failed: %w", err)
	}

	k8s, err := compatibility.ParseKubernetesVersion(machineconfig.ImageVersion(machineconfig.KubeletImage(n.Config())))
	if err != nil {
		return nil //nolint:nilerr // an image without a version is not checked
	}
	if err := k8s.SupportedWith(target); err != nil {
		return fmt.Errorf("pre-flight checks failed: version of Kubernetes %s is not supported: %w", k8s, err)
	}

	return nil
}

// SwitchTo makes another Talos the one that boots, and keeps this one for a rollback.
func (n *Node) SwitchTo(next guest.Image) error {
	return n.Disk.Update(func(d *disks.Installation) {
		before := d.Active
		d.Previous, d.Active, d.Staged = &before, next, nil
	})
}

// finishStagedUpgrade installs what was staged, early in the boot, and reports whether it did.
func (n *Node) finishStagedUpgrade(ctx context.Context) (bool, error) {
	if n.Disk == nil || n.fromCD() || n.Disk.Read().Staged == nil {
		return false, nil
	}

	next := *n.Disk.Read().Staged
	cfg, err := machineconfig.Load(n.Disk.Read().Config, n.Image.Talos)
	if err == nil {
		n.setConfig(cfg)
		err = n.Preflight(next)
	}
	if err != nil {
		return false, errors.Join(err, n.Disk.Update(func(d *disks.Installation) { d.Staged = nil }))
	}
	if err := n.VM.Clock.Sleep(ctx, UpgradeTime); err != nil {
		return false, err // power cut
	}

	return true, n.SwitchTo(next)
}
