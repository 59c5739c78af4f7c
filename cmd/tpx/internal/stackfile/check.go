// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stackfile

import (
	"context"

	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/pulumi"
)

// Check returns everything that is wrong with a stack file as a [*spec.InvalidError], and how many nodes it
// has: the rules, what Talos says of each node's machine configuration, and
// charts as far as they are in the project's cache.
func Check(ctx context.Context, p pulumi.Project, cli pulumi.CLI) (int, error) {
	s, opened, err := Load(ctx, p, cli)
	if err != nil {
		return 0, opened.Explain(err)
	}

	return len(s.Nodes), opened.Explain(s.Check(ctx))
}
