// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout

import (
	"context"
	"fmt"
	"slices"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

// WarnForced warns of nodes in lifecycle.force that answer: a name that stays there has the node given up the next
// time it is silent for a moment.
func WarnForced(
	ctx context.Context, access cluster.Access, c cluster.Cluster, force []string, opts cluster.PollOptions, warn func(string),
) {
	for _, m := range c.Members {
		if !slices.Contains(force, m.Name) {
			continue
		}
		api, err := access.Talos(ctx)
		if err != nil {
			return
		}
		calling, cancel := context.WithTimeout(ctx, opts.Call)
		_, err = api.Version(calling, m.Address)
		cancel()
		if err == nil {
			warn(fmt.Sprintf("lifecycle.force names %s, which answers: take the name out, or the node is given up when it is silent "+
				"for a moment", m.Name))
		}
	}
}
