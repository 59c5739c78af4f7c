// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/compatibility"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

// upgradeTime is what the installer takes.
const upgradeTime = 25 * time.Second

// Upgrade installs another Talos and reboots into it.
func (s *machineServer) Upgrade(ctx context.Context, in *machine.UpgradeRequest) (*machine.UpgradeResponse, error) {
	n := s.node
	if n.disk == nil {
		return nil, status.Error(codes.FailedPrecondition, "Talos is not installed")
	}
	img, err := n.pull(ctx, in.GetImage())
	if err != nil {
		return nil, fmt.Errorf("error validating installer image %q: %w", in.GetImage(), err)
	}
	if isControlPlane(n.config()) && !in.GetForce() {
		if err := n.etcdReadyForUpgrade(); err != nil {
			return nil, err
		}
	}

	actor := uuid.NewString()
	run := n.upgrade(n.onDisk(img))
	if in.GetStage() {
		next := n.onDisk(img)
		if err := n.disk.update(func(d *installation) { d.Staged = &next }); err != nil {
			return nil, fmt.Errorf("error adding staged upgrade image ref tag: %w", err)
		}
		run = n.reboot
	}
	if !n.ask(request{actor: actor, run: run}) {
		return nil, errBusy
	}

	return &machine.UpgradeResponse{
		Messages: []*machine.Upgrade{{Ack: "Upgrade request received", ActorId: actor}},
	}, nil
}

// etcdReadyForUpgrade tells whether etcd can spare this member.
func (n *node) etcdReadyForUpgrade() error {
	g, _ := n.group()
	if g == nil {
		return errors.New("failed to create etcd client: error building etcd client: context deadline exceeded")
	}
	v := g.view()
	if !v.quorum {
		return fmt.Errorf("failed to acquire upgrade mutex: %w", errNoLeader)
	}
	if len(v.members) == 2 {
		return fmt.Errorf("error validating etcd for upgrade: "+
			"etcd member count(%d) is insufficient to maintain quorum if upgrade commences", len(v.members))
	}
	for _, m := range v.members {
		if !v.alive[m.ID] {
			return fmt.Errorf("error validating etcd for upgrade: etcd member %016x is not healthy; "+
				"all members must be healthy to perform an upgrade: context deadline exceeded", m.ID)
		}
	}

	return nil
}

// upgrade is the sequence that replaces the running Talos.
func (n *node) upgrade(next guest.Image) func(context.Context, string) (guest.Exit, error) {
	return func(ctx context.Context, actor string) (guest.Exit, error) {
		attrs := n.attrs()
		attrs["to"], attrs["schematic"] = next.Talos, next.Schematic
		end := n.m.Trace.Begin("talos.upgrade", n.object(), attrs)
		n.events.sequence("upgrade", machine.SequenceEvent_START, actor, nil)
		n.setStage(stageUpgrading, nil)
		n.drain(ctx, actor)
		n.setKubelet(false)

		err := n.events.phase("upgrade", actor, func() error {
			if err := n.preflight(next); err != nil {
				return err
			}
			if err := n.m.Clock.Sleep(ctx, upgradeTime); err != nil {
				return err
			}

			return n.switchTo(next)
		})
		n.events.sequence("upgrade", machine.SequenceEvent_STOP, actor, err)
		if err != nil {
			n.console("upgrade failed", "error", err)
		}
		n.quiesce(actor)
		exit, sleepErr := n.rebootNow(ctx)
		end(errors.Join(err, sleepErr))

		return exit, sleepErr
	}
}

// preflight is the installer's own check: it knows which Talos it follows and which Kubernetes it
// runs.
func (n *node) preflight(next guest.Image) error {
	target, err := compatibility.ParseTalosVersion(&machine.VersionInfo{Tag: next.Talos})
	if err != nil {
		return fmt.Errorf("pre-flight checks failed: failed to parse installer Talos version: %w", err)
	}
	host, err := compatibility.ParseTalosVersion(&machine.VersionInfo{Tag: n.image.Talos})
	if err != nil {
		return fmt.Errorf("pre-flight checks failed: failed to parse host Talos version: %w", err)
	}
	if err := target.UpgradeableFrom(host); err != nil {
		return fmt.Errorf("pre-flight checks failed: %w", err)
	}

	k8s, err := compatibility.ParseKubernetesVersion(imageVersion(n.config().Machine().Kubelet().Image()))
	if err != nil {
		return nil //nolint:nilerr // an image without a version is not checked
	}
	if err := k8s.SupportedWith(target); err != nil {
		return fmt.Errorf("pre-flight checks failed: version of Kubernetes %s is not supported: %w", k8s, err)
	}

	return nil
}

// switchTo makes another Talos the one that boots, and keeps this one for a rollback.
func (n *node) switchTo(next guest.Image) error {
	return n.disk.update(func(d *installation) {
		before := d.Active
		d.Previous, d.Active, d.Staged = &before, next, nil
	})
}

// finishStagedUpgrade installs what was staged, early in the boot, and tells whether it did.
func (n *node) finishStagedUpgrade(ctx context.Context) (bool, error) {
	if n.disk == nil || n.fromCD() || n.disk.read().Staged == nil {
		return false, nil
	}

	next := *n.disk.read().Staged
	cfg, err := loadConfig(n.disk.read().Config, n.image.Talos)
	if err == nil {
		n.setConfig(cfg)
		err = n.preflight(next)
	}
	if err != nil {
		return false, errors.Join(err, n.disk.update(func(d *installation) { d.Staged = nil }))
	}
	if err := n.m.Clock.Sleep(ctx, upgradeTime); err != nil {
		return false, err //nolint:wrapcheck // power cut
	}

	return true, n.switchTo(next)
}

// Rollback goes back to the Talos before the last upgrade.
func (s *machineServer) Rollback(context.Context, *machine.RollbackRequest) (*machine.RollbackResponse, error) {
	n := s.node
	previous := n.disk.read().Previous
	if previous == nil {
		return nil, errors.New("failed to revert bootloader: previous boot entry not found")
	}

	err := n.disk.update(func(d *installation) {
		now := d.Active
		d.Active, d.Previous = *previous, &now
	})
	if err != nil {
		return nil, err
	}
	if !n.ask(request{actor: uuid.NewString(), run: n.reboot}) {
		return nil, errBusy
	}

	return &machine.RollbackResponse{Messages: []*machine.Rollback{{}}}, nil
}
