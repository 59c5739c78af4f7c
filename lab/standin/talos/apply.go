// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

const stagedIfReboot = "staged_if_needing_reboot"

func configurationApply() *bridge.Resource {
	return &bridge.Resource{
		Args: &machine.ConfigurationApplyArgs{}, State: machine.ConfigurationApply{},
		Framework: true,
		Secrets:   []string{"clientConfiguration.clientKey", "machineConfiguration", "machineConfigurationInput"},
		Computed:  []string{"applyMode", "endpoint", "machineConfiguration", "resolvedApplyMode"},
		Validate:  validateApply,
		Recompute: func([]bridge.Change) []string {
			return []string{"machineConfiguration", "resolvedApplyMode", "endpoint"}
		},
		Plan: planApply,
		Create: func(ctx context.Context, op *bridge.Op) (string, bridge.Tree, error) {
			out, err := apply(ctx, op, "timeouts.create")
			if err != nil {
				return "", nil, err
			}
			return "machine_configuration_apply", out, nil
		},
		Update: func(ctx context.Context, op *bridge.Op) (bridge.Tree, error) {
			return apply(ctx, op, "timeouts.update")
		},
		Delete: resetOnDestroy,
	}
}

func validateApply(p *bridge.Problems, in bridge.Tree) {
	validTimeouts(p, in)

	switch mode := in.Str("applyMode"); mode {
	case "", "auto", "reboot", "no_reboot", "staged", stagedIfReboot:
	default:
		p.Add(bridge.Path{"applyMode"}, `Invalid Attribute Value Match. Attribute apply_mode value must be one of: `+
			`["auto" "reboot" "no_reboot" "staged" "staged_if_needing_reboot"], got: %q`, mode)
	}
}

// yamlContext is what the YAML reader of the machinery says since Talos 1.13 of where it was.
var yamlContext = regexp.MustCompile(`while parsing [^:]*: `)

// asBefore returns an error of the YAML reader in the words of the one that the plugin was built with.
func asBefore(err error) string { return yamlContext.ReplaceAllString(err.Error(), "") }

// patched returns the configuration with the patches applied.
func patched(in bridge.Tree) (string, error) {
	patches, err := configpatcher.LoadPatches(in.Strs("configPatches"))
	if err != nil {
		return "", errors.New("Error loading config patches - " + asBefore(err)) // the plugin's text
	}

	out, err := configpatcher.Apply(configpatcher.WithBytes([]byte(in.Str("machineConfigurationInput"))), patches)
	if err != nil {
		return "", fmt.Errorf("Error applying config patches - %w", err) // the plugin's text
	}

	text, err := out.Bytes()
	if err != nil {
		return "", fmt.Errorf("Error converting config to bytes - %w", err) // the plugin's text
	}

	return string(text), nil
}

// planApply tells a preview what will be applied. Only staged_if_needing_reboot asks the node.
func planApply(ctx context.Context, op *bridge.Op) (bridge.Tree, error) {
	out := merged(bridge.Tree{"applyMode": modeOf(op.In)}, onDestroy(op.In))
	if op.Unknown["node"] || op.Unknown["endpoint"] {
		return out, nil
	}
	out["endpoint"] = endpointOf(op.In)

	if op.Unknown["machineConfigurationInput"] || op.Unknown["configPatches"] {
		return out, nil
	}

	text, err := patched(op.In)
	if err != nil {
		return nil, err
	}
	out["machineConfiguration"] = text
	out["resolvedApplyMode"] = resolveMode(ctx, op, text)

	return out, nil
}

// onDestroy returns the block of that name with its defaults, where there is one.
func onDestroy(in bridge.Tree) bridge.Tree {
	if !in.Has("onDestroy") {
		return nil
	}

	return bridge.Tree{"onDestroy": merged(bridge.Tree{"reset": false, "graceful": true, "reboot": false}, in.Sub("onDestroy"))}
}

func modeOf(in bridge.Tree) string {
	if m := in.Str("applyMode"); m != "" {
		return m
	}

	return "auto"
}

// resolveMode asks the node in a dry run whether it would reboot, where the mode says so.
func resolveMode(ctx context.Context, op *bridge.Op, text string) string {
	mode := modeOf(op.In)
	if mode != stagedIfReboot {
		return mode
	}
	if was := op.State.Str("resolvedApplyMode"); was != "" && op.State.Str("machineConfiguration") == text {
		return was
	}

	reboot := false
	t, err := targetOf(op.In)
	if err == nil {
		err = t.do(ctx, func(ctx context.Context, c *client.Client) error {
			r, err := c.ApplyConfiguration(ctx, &machineapi.ApplyConfigurationRequest{
				Mode: machineapi.ApplyConfigurationRequest_AUTO, Data: []byte(text), DryRun: true,
			})
			if err == nil && len(r.GetMessages()) > 0 {
				reboot = r.GetMessages()[0].GetMode() == machineapi.ApplyConfigurationRequest_REBOOT
			}
			return err
		})
	}

	switch {
	case err != nil:
		op.Warn("Cannot check reboot requirement: Node %s: %v. Using 'auto' mode (may reboot).", op.In.Str("node"), err)
		return "auto"
	case reboot:
		op.Warn("Reboot prevented - using staged mode: Node %[1]s: Configuration requires reboot. "+
			"Using 'staged' mode. Manually reboot with: talosctl reboot --nodes %[1]s", op.In.Str("node"))
		return "staged"
	}

	return "auto"
}

func apply(ctx context.Context, op *bridge.Op, timeoutAt string) (bridge.Tree, error) {
	text, err := patched(op.In)
	if err != nil {
		return nil, err
	}

	t, err := targetOf(op.In)
	if err != nil {
		return nil, err
	}

	timeout, err := timeoutOf(op.In, timeoutAt)
	if err != nil {
		return nil, err
	}

	mode := resolveMode(ctx, op, text)
	request := &machineapi.ApplyConfigurationRequest{
		Mode: machineapi.ApplyConfigurationRequest_Mode(
			machineapi.ApplyConfigurationRequest_Mode_value[strings.ToUpper(mode)]),
		Data: []byte(text),
	}

	err = retry(ctx, timeout, func(ctx context.Context) error {
		return t.do(ctx, func(ctx context.Context, c *client.Client) error {
			_, err := c.ApplyConfiguration(ctx, request)
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("Error applying configuration: %w", err) // the plugin's text
	}

	out := bridge.Tree{
		"applyMode": modeOf(op.In), "resolvedApplyMode": mode,
		"endpoint": t.endpoint, "machineConfiguration": text,
	}

	return merged(out, onDestroy(op.In)), turnaround(op.In)
}
