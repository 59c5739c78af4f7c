// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/proxmox"
	"github.com/talos-proxmox/talos-proxmox/stack"
)

// engine runs Pulumi on one stack.
type engine struct {
	dir, stack, file string

	env []string // what commands find beside the environment
}

// output runs a command of Pulumi's on the stack.
func (e engine) output(ctx context.Context, command string, args ...string) ([]byte, error) {
	args = append([]string{command, "--stack", e.stack, "--non-interactive"}, args...)
	if e.file != "" {
		args = append(args, "--config-file", e.file)
	}
	cmd := exec.CommandContext(ctx, "pulumi", args...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = e.dir, append(os.Environ(), e.env...), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		// A document for programs may hold secrets, and says nothing to people.
		if document := strings.TrimSpace(stdout.String()); !strings.HasPrefix(document, "{") {
			stderr.WriteString("\n" + document)
		}

		return nil, fmt.Errorf("pulumi %s: %w\n%s", command, err, strings.TrimSpace(stderr.String()))
	}

	return stdout.Bytes(), nil
}

// plan is what an up would do.
func (e engine) plan(ctx context.Context) (plan, error) {
	text, err := e.output(ctx, "preview", "--json", "--show-sames")
	if err != nil {
		return plan{}, err
	}

	return readPlan(text)
}

// access is how the stack's provider reaches the API: as the stack says it, else the environment. Pulumi
// hides secrets in a preview; only the stack's configuration can be had with them.
func (e engine) access(ctx context.Context) (proxmox.Access, error) {
	text, err := e.output(ctx, "config", "--json", "--show-secrets")
	if err != nil {
		return proxmox.Access{}, err
	}

	return readAccess(text)
}

// readAccess reads what `pulumi config --json --show-secrets` prints.
func readAccess(text []byte) (proxmox.Access, error) {
	var config map[string]struct {
		Value string `json:"value"`
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return proxmox.Access{}, fmt.Errorf("reading the stack's configuration: %w", err)
	}
	var said struct {
		Endpoint string `json:"endpoint"`
		Token    string `json:"apiToken"`
		Username string `json:"username"`
		Password string `json:"password"`
		Insecure bool   `json:"insecure"`
	}
	if block, ok := config[stack.Project+":proxmox"]; ok {
		if err := json.Unmarshal([]byte(block.Value), &said); err != nil {
			return proxmox.Access{}, errors.New("reading the stack's configuration: proxmox is no block") // the cause may quote it
		}
	}

	return proxmox.Access{
		Endpoint: cmp.Or(said.Endpoint, os.Getenv("PROXMOX_VE_ENDPOINT")), Insecure: said.Insecure,
		Token:    cmp.Or(said.Token, os.Getenv("PROXMOX_VE_API_TOKEN")),
		Username: cmp.Or(said.Username, os.Getenv("PROXMOX_VE_USERNAME")),
		Password: cmp.Or(said.Password, os.Getenv("PROXMOX_VE_PASSWORD")),
	}, nil
}

// with is the engine whose providers find these credentials in their environment, so that they need not
// be written anywhere.
func (e engine) with(a proxmox.Access) engine {
	e.env = []string{
		"PROXMOX_VE_API_TOKEN=" + a.Token, "PROXMOX_VE_USERNAME=" + a.Username, "PROXMOX_VE_PASSWORD=" + a.Password,
	}
	e.env = slices.DeleteFunc(e.env, func(kv string) bool { return strings.HasSuffix(kv, "=") })

	return e
}
