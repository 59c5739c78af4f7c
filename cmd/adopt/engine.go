// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/proxmox"
)

// engine is Pulumi, on one stack.
type engine struct{ dir, stack, file string }

// output runs a command of Pulumi's on the stack.
func (e engine) output(ctx context.Context, command string, args ...string) ([]byte, error) {
	args = append([]string{command, "--stack", e.stack, "--non-interactive"}, args...)
	if e.file != "" {
		args = append(args, "--config-file", e.file)
	}
	cmd := exec.CommandContext(ctx, "pulumi", args...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = e.dir, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		// A document for programs may hold secrets, and says nothing to people.
		if document := strings.TrimSpace(stdout.String()); !strings.HasPrefix(document, "{") {
			stderr.WriteString("\n" + document)
		}

		return nil, fmt.Errorf("pulumi %s: %w\n%s", command, err, strings.TrimSpace(stderr.String()))
	}

	return stdout.Bytes(), nil
}

// plan is what an up would do. Secrets are asked for only where the provider has one: the API is asked
// with the same credentials.
func (e engine) plan(ctx context.Context) (plan, error) {
	args := []string{"--json", "--show-sames"}
	text, err := e.output(ctx, "preview", args...)
	if err != nil {
		return plan{}, err
	}
	p, err := readPlan(text)
	if err != nil || !p.provider.hidesAny() {
		return p, err
	}
	text, err = e.output(ctx, "preview", append(args, "--show-secrets")...)
	if err != nil {
		return plan{}, err
	}
	open, err := readPlan(text)
	p.provider.open = open.provider.inputs

	return p, err
}

// access is how the API is reached: as the provider's inputs say it, else the environment.
func (p provider) access() proxmox.Access {
	text := func(key, variable string) string {
		if s, _ := p.open[key].(string); s != "" {
			return s
		}

		return os.Getenv(variable)
	}

	return proxmox.Access{
		Endpoint: text("endpoint", "PROXMOX_VE_ENDPOINT"), Token: text("apiToken", "PROXMOX_VE_API_TOKEN"),
		Username: text("username", "PROXMOX_VE_USERNAME"), Password: text("password", "PROXMOX_VE_PASSWORD"),
		Insecure: text("insecure", "PROXMOX_VE_INSECURE") == "true",
	}
}
