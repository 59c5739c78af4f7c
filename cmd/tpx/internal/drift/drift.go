// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package drift names what somebody changed by hand on the nodes of a stack since its last up, in what the
// providers do not look at: Talos versions, schematics, machine configurations, members of etcd, nodes of
// Kubernetes; and disks that were added to VMs, which the provider takes out of none. What the nodes are supposed to be,
// and the credentials, are in the stack's state; nothing secret is printed or written.
package drift

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/state"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/health"
	"github.com/talos-proxmox/talos-proxmox/internal/talosapi"
)

// Run prints what was changed, cluster by cluster, and reports whether anything was.
func Run(ctx context.Context, clusters []state.Cluster, out io.Writer) (bool, error) {
	drifted := false
	for _, c := range clusters {
		lines, err := find(ctx, c)
		if err != nil {
			return false, fmt.Errorf("cluster %q: %w", c.Name, err)
		}
		machines, unasked := machineDrift(ctx, c)
		if lines = append(lines, machines...); unasked != "" {
			fmt.Fprintf(out, "cluster %q: its VMs were not looked at: %s\n", c.Name, unasked)
		}
		for _, line := range lines {
			fmt.Fprintln(out, line)
		}
		drifted = drifted || len(lines) > 0
		if len(lines) == 0 {
			fmt.Fprintf(out, "cluster %q: all %d nodes are as the stack has them\n", c.Name, len(c.Nodes))
		}
	}

	return drifted, nil
}

// callTimeout bounds each question to a node.
const callTimeout = 15 * time.Second

// find returns what was changed in one cluster.
func find(ctx context.Context, c state.Cluster) ([]string, error) {
	remote, err := talosapi.NewRemote(c.Talosconfig, c.Cluster)
	if err != nil {
		return nil, err
	}
	defer remote.Close() //nolint:errcheck // nothing was written

	return health.Drift(ctx, remote, c.Cluster, c.Nodes, cluster.PollOptions{Call: callTimeout})
}
