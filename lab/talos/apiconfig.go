// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configdiff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

// tryTimeout is how long a configuration applied with --mode=try lives.
const tryTimeout = time.Minute

// ApplyConfiguration changes the node's configuration, with a reboot where that is needed.
func (s *machineServer) ApplyConfiguration(
	ctx context.Context, in *machine.ApplyConfigurationRequest,
) (*machine.ApplyConfigurationResponse, error) {
	attrs := s.node.attrs()
	attrs["mode"], attrs["dryRun"] = in.GetMode().String(), fmt.Sprint(in.GetDryRun())
	end := s.node.m.Trace.Begin("talos.apply", s.node.object(), attrs)
	reply, err := s.applyConfiguration(ctx, in)
	if err == nil {
		attrs["applied"] = reply.GetMode().String()
	}
	end(err)
	if err != nil {
		return nil, err
	}

	return &machine.ApplyConfigurationResponse{Messages: []*machine.ApplyConfiguration{reply}}, nil
}

func (s *machineServer) applyConfiguration(
	ctx context.Context, in *machine.ApplyConfigurationRequest,
) (*machine.ApplyConfiguration, error) {
	cfg, err := loadConfig(in.GetData(), s.node.image.Talos)
	if err != nil {
		return nil, invalid(err)
	}
	if cfg.RawV1Alpha1() == nil {
		return nil, invalid(errors.New("the applied machine configuration doesn't contain v1alpha1 config, " +
			"did you mean to patch the machine config instead?"))
	}
	warnings, err, runtimeErr := s.node.validate(ctx, cfg, s.node.runMode())
	if err = errors.Join(err, runtimeErr); err != nil {
		return nil, invalid(err)
	}

	mode, details, err := chooseMode(in.GetMode(), canApplyNow(s.node.config(), cfg))
	if err != nil {
		return nil, err
	}
	if in.GetDryRun() {
		diff, err := configdiff.DiffConfigs(s.node.config(), cfg)
		if err != nil {
			return nil, fmt.Errorf("failed to generate diff: %w", err)
		}
		if diff == "" {
			diff = "No changes."
		}
		head, _, _ := cutLine(details)

		return &machine.ApplyConfiguration{
			Mode:        mode,
			ModeDetails: "Dry run summary:\n" + head + " (skipped in dry-run).\nConfig diff:\n\n" + diff,
		}, nil
	}

	if mode == machine.ApplyConfigurationRequest_TRY {
		timeout := tryTimeout
		if in.GetTryModeTimeout() != nil {
			timeout = in.GetTryModeTimeout().AsDuration()
		}
		details += "\nThe config is applied in 'try' mode and will be automatically reverted back in " + timeout.String()
		s.node.tryConfig(cfg, timeout)

		return &machine.ApplyConfiguration{Mode: mode, Warnings: warnings, ModeDetails: details}, nil
	}
	if err := s.node.keepConfig(cfg, mode); err != nil {
		return nil, err
	}

	return &machine.ApplyConfiguration{Mode: mode, Warnings: warnings, ModeDetails: details}, nil
}

// cutLine splits off what follows the first colon: the reason for a reboot.
func cutLine(s string) (head, rest string, found bool) {
	for i := range len(s) {
		if s[i] == ':' {
			return s[:i], s[i+1:], true
		}
	}

	return s, "", false
}

// chooseMode decides how a configuration is applied; obstacle is why it cannot be at once.
func chooseMode(
	mode machine.ApplyConfigurationRequest_Mode, obstacle error,
) (machine.ApplyConfigurationRequest_Mode, string, error) {
	const (
		live   = "Applied configuration without a reboot"
		reboot = "Applied configuration with a reboot"
	)

	switch mode {
	case machine.ApplyConfigurationRequest_TRY, machine.ApplyConfigurationRequest_NO_REBOOT:
		if obstacle != nil {
			return mode, "", invalid(obstacle)
		}

		return mode, live, nil
	case machine.ApplyConfigurationRequest_STAGED:
		return mode, "Staged configuration to be applied after the next reboot", nil
	case machine.ApplyConfigurationRequest_AUTO:
		if obstacle != nil {
			return machine.ApplyConfigurationRequest_REBOOT, reboot + ": " + obstacle.Error(), nil
		}

		return machine.ApplyConfigurationRequest_NO_REBOOT, live, nil
	case machine.ApplyConfigurationRequest_REBOOT:
		return mode, reboot, nil
	}

	return mode, "", status.Errorf(codes.Unknown, "incorrect mode '%s' specified for the apply config call", mode)
}

// keepConfig saves a configuration and brings it into force as the mode says.
func (n *node) keepConfig(cfg config.Provider, mode machine.ApplyConfigurationRequest_Mode) error {
	n.cancelTry()
	data, err := cfg.Bytes()
	if err != nil {
		return fmt.Errorf("saving the configuration: %w", err)
	}
	if err := n.disk.update(func(in *installation) { in.Config = data }); err != nil {
		return err
	}

	switch mode {
	case machine.ApplyConfigurationRequest_NO_REBOOT:
		n.useConfig(cfg)
	case machine.ApplyConfigurationRequest_REBOOT:
		n.ask(request{run: n.reboot})
	default:
	}

	return nil
}

// useConfig brings a configuration into force while the node runs.
func (n *node) useConfig(cfg config.Provider) {
	n.setConfig(cfg)
	n.applyNetwork()
	if err := n.renewPKI(); err != nil {
		n.console("renewing the API's certificate", "error", err)
	}
	n.publishState()
	n.poke()
}

// tryConfig uses a configuration for a while and goes back.
func (n *node) tryConfig(cfg config.Provider, timeout time.Duration) {
	n.cancelTry()
	ctx, cancel := context.WithCancel(context.Background())
	before := n.config()
	n.mu.Lock()
	n.try = cancel
	n.mu.Unlock()
	n.useConfig(cfg)

	go func() {
		if n.m.Clock.Sleep(ctx, timeout) == nil {
			n.useConfig(before)
		}
	}()
}

func (n *node) cancelTry() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.try != nil {
		n.try()
		n.try = nil
	}
}

// rebootNow ends the power cycle after the time that a node needs to stop.
func (n *node) rebootNow(ctx context.Context) (guest.Exit, error) {
	n.setStage(stageRebooting, nil)
	if err := n.m.Clock.Sleep(ctx, rebootTime); err != nil {
		return guest.ExitPowerOff, err
	}

	return guest.ExitReboot, nil
}
