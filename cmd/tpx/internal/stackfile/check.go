// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stackfile

import (
	"context"
	"os"
	"path/filepath"

	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/pulumi"
	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
)

// Check returns everything that is wrong with a stack file as a [*spec.InvalidError], and how many nodes it
// has: the rules, and then what Talos says of each node's machine configuration.
func Check(ctx context.Context, p pulumi.Project, cli pulumi.CLI) (int, error) {
	s, opened, err := Load(ctx, p, cli)
	if err != nil {
		return 0, opened.Explain(err)
	}
	var problems check.List
	machineconfig.Check(machineconfig.Input{Config: s.Config, ReadFile: func(path string) ([]byte, error) {
		return os.ReadFile(filepath.Join(p.Dir, path)) //nolint:gosec // G304: a file that the stack names
	}}, &problems)

	return len(s.Nodes), problems.Err("stack " + cli.FileStack()) //nolint:wrapcheck // says everything
}
