// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"context"
	"fmt"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/disks"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"
)

// SaveConfig saves a configuration and brings it into force as the mode says.
func (n *Node) SaveConfig(cfg config.Provider, mode machine.ApplyConfigurationRequest_Mode) error {
	data, err := cfg.Bytes()
	if err != nil {
		return fmt.Errorf("saving the configuration: %w", err)
	}
	if err := n.Disk.Update(func(in *disks.Installation) { in.Config = data }); err != nil {
		return err
	}
	n.setApplied()
	n.PublishState()

	switch mode {
	case machine.ApplyConfigurationRequest_NO_REBOOT:
		n.useConfig(cfg)
	case machine.ApplyConfigurationRequest_REBOOT:
		n.Ask(Request{Sequence: SequenceReboot, Takeover: true, Run: n.Reboot})
	default:
	}

	return nil
}

// useConfig brings a configuration into force while the node runs.
func (n *Node) useConfig(cfg config.Provider) {
	n.setConfig(cfg)
	n.applyNetwork()
	if err := n.RenewPKI(); err != nil {
		n.Console("renewing the API's certificate", "error", err)
	}
	n.PublishState()
	n.Poke()
}

// TryConfig uses a configuration for a while, in real time as all that a program waits for, and goes back.
func (n *Node) TryConfig(cfg config.Provider, timeout time.Duration) {
	n.CancelTry()
	ctx, cancel := context.WithCancel(context.Background())
	before := n.Config()
	n.mu.Lock()
	n.try = cancel
	n.mu.Unlock()
	n.useConfig(cfg)

	go func() {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
			n.useConfig(before)
		}
	}()
}

// CancelTry keeps a configuration that is being tried from being taken back.
func (n *Node) CancelTry() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.try != nil {
		n.try()
		n.try = nil
	}
}

// rebootNow ends the power cycle after the time that a node needs to stop.
func (n *Node) rebootNow(ctx context.Context) (guest.Exit, error) {
	n.setStage(stageRebooting, nil)
	if err := n.VM.Clock.Sleep(ctx, rebootTime); err != nil {
		return guest.ExitPowerOff, err
	}

	return guest.ExitReboot, nil
}

func (n *Node) RunMode() machineconfig.RunMode {
	return machineconfig.RunMode{Platform: n.Image.Platform, Installed: n.Disk != nil}
}

// Validate checks a configuration against this node and returns Talos's warnings.
func (n *Node) Validate(
	ctx context.Context, cfg config.Provider, mode machineconfig.RunMode,
) (warnings []string, err, runtimeErr error) {
	warnings, err = cfg.Validate(mode)
	if err = machineconfig.OwnRefusals(err, n.TalosVersion()); err != nil {
		return nil, err, nil
	}
	more, runtimeErr := cfg.RuntimeValidate(ctx, n.state, mode)

	return append(warnings, more...), nil, runtimeErr
}
