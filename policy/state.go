// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
)

// ReadState returns the machines that the state of a stack remembers. It asks the Pulumi CLI, which knows the backend.
func ReadState(ctx context.Context, stack string) (map[string]Machines, error) {
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, "pulumi", "stack", "export", "--stack", stack, "--non-interactive")
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("pulumi stack export: %w: %s", err, strings.TrimSpace(said.String()))
	}

	return parseState(out.Bytes())
}

// parseState reads machines from an exported state.
func parseState(text []byte) (map[string]Machines, error) {
	var state struct {
		Deployment struct {
			Resources []struct {
				URN    string         `json:"urn"`
				Type   string         `json:"type"`
				Inputs map[string]any `json:"inputs"`
			} `json:"resources"`
		} `json:"deployment"`
	}
	if err := json.Unmarshal(text, &state); err != nil {
		return nil, fmt.Errorf("reading the exported state: %w", err)
	}
	found := map[string]Machines{}
	for _, r := range state.Deployment.Resources {
		if r.Type != stashType {
			continue
		}
		if machines, ok := readMachines(r.Inputs["input"]); ok {
			found[r.URN] = machines
		}
	}

	return found, nil
}
