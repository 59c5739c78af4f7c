// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package adopt imports the VMs of a cluster that already runs into a stack whose state does not know them, so
// that the stack's `up` takes them over instead of creating them. It looks at every VM that `up` would
// create: one that exists with the id, host, name, MAC addresses and disks that the stack file gives is
// written into the state; one that does not exist is left to `up`; one that differs from the stack file is
// refused, before anything is written. Nothing in Proxmox VE changes.
package adopt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/pulumi"
	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/proxmox"
)

// Run writes those of the stack's VMs that exist already into its state.
func Run(ctx context.Context, project pulumi.Project, cli pulumi.CLI, out io.Writer) error {
	e := engine{project: project, cli: cli}
	plan, err := e.plan(ctx)
	if err != nil {
		return err
	}
	if len(plan.machines) == 0 {
		fmt.Fprintln(out, "there is nothing to adopt: up would make no VM")

		return nil
	}
	access, err := e.access(ctx)
	if err != nil {
		return err
	}
	client, err := proxmox.New(access)
	if err != nil {
		return err
	}

	var problems check.List
	var found []planned
	for _, m := range plan.machines {
		there, err := client.Inspect(ctx, m.id())
		switch {
		case err != nil:
			return fmt.Errorf("VM %d: %w", m.id(), err)
		case there == nil:
			fmt.Fprintf(out, "VM %d of %s is not there: up will make it\n", m.id(), m.name())
		default:
			m.compare(*there, &problems)
			found = append(found, m)
		}
	}
	if err := problems.Err("nothing is adopted"); err != nil {
		return err
	}
	if len(found) == 0 {
		return errors.New("none of the stack's VMs is there: nothing is adopted")
	}
	if err := e.with(access).importAll(ctx, plan, found); err != nil {
		return err
	}
	if err := e.refuseReplacements(ctx, found); err != nil {
		return err
	}
	for _, m := range found {
		fmt.Fprintf(out, "VM %d of %s is adopted\n", m.id(), m.name())
	}

	return nil
}

// importAll writes VMs, and the components that they belong to, into the state.
func (e engine) importAll(ctx context.Context, p plan, found []planned) error {
	for _, file := range []map[string]any{providersParents(p), importFile(p, found)} {
		if file == nil {
			continue
		}
		if err := e.importFile(ctx, file); err != nil {
			return err
		}
	}
	// What the VMs are really like: the next preview shows every difference.
	refresh := []string{"--yes", "--skip-preview"}
	for _, m := range found {
		refresh = append(refresh, "--target", m.urn)
	}
	_, err := e.cli.Run(ctx, "refresh", refresh...)

	return err
}

// refuseReplacements fails, and takes the VMs out of the state again, when an up would replace or delete a VM: the edit that
// does so is one for a stack that knows its VMs.
func (e engine) refuseReplacements(ctx context.Context, found []planned) error {
	text, err := e.cli.Run(ctx, "preview", "--json")
	if err != nil {
		return fmt.Errorf("previewing what was adopted: %w", err)
	}
	replaced, err := readReplaced(text)
	if err != nil || len(replaced) == 0 {
		return err
	}
	forget := []string{"--yes", "--force"}
	for _, m := range found {
		forget = append(forget, m.urn)
	}
	err = fmt.Errorf("up would replace or delete VMs: %s\n  nothing is adopted, and the state is as it was: take back what rebuilds "+
		"them (lifecycle.replace, lifecycle.allowReplace), or write the stack file as the VMs are, and run `tpx adopt` again",
		strings.Join(replaced, ", "))
	if _, failed := e.cli.Run(ctx, "state delete", forget...); failed != nil {
		err = errors.Join(err, fmt.Errorf("taking them out of the state again: %w", failed))
	}

	return err
}

// importFile has Pulumi write what a file says into the state.
func (e engine) importFile(ctx context.Context, content map[string]any) error {
	text, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("writing what to import: %w", err)
	}
	dir, err := os.MkdirTemp("", "adopt-*")
	if err != nil {
		return fmt.Errorf("writing what to import: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "import.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("writing what to import: %w", err)
	}
	_, err = e.cli.Run(ctx, "import", "--file", path, "--yes", "--skip-preview", "--generate-code=false", "--protect=false")

	return err
}
