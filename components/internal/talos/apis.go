// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/health"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
	"github.com/talos-proxmox/talos-proxmox/internal/talosapi"
)

// APIs opens a cluster's APIs with credentials that become known during the run.
type APIs struct {
	cluster     cluster.Cluster
	talosconfig *hook.Future[string]
	// force names nodes that may be given up.
	force []string

	// status makes sure that nodes in different states are reported once a run.
	status sync.Once

	mu     sync.Mutex
	remote *talosapi.Remote
}

func newAPIs(c cluster.Cluster) *APIs {
	return &APIs{cluster: c, talosconfig: hook.NewFuture[string]("the cluster's talosconfig")}
}

// open returns the cluster's APIs, the same for the whole run.
func (a *APIs) open(ctx context.Context) (*talosapi.Remote, error) {
	talosconfig, err := a.talosconfig.Get(ctx)
	if err != nil {
		return nil, fmt.Errorf("cluster %q: %w", a.cluster.Name, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.remote != nil {
		return a.remote, nil
	}
	remote, err := talosapi.NewRemote(talosconfig, a.cluster)
	if err != nil {
		return nil, fmt.Errorf("cluster %q: %w", a.cluster.Name, err)
	}
	a.remote = remote

	return remote, nil
}

// openLiving returns the APIs of a cluster that is about to be changed. The first call in a run reports how
// the nodes stand, those that leave too, where an earlier run has left them in different states.
func (a *APIs) openLiving(
	ctx context.Context, report func(string), leaving ...cluster.Member,
) (*talosapi.Remote, error) {
	remote, err := a.open(ctx)
	if err != nil {
		return nil, err
	}
	a.status.Do(func() {
		c := a.cluster
		c.Members = append(slices.Clone(c.Members), leaving...)
		health.ReportStatus(ctx, remote, c, cluster.DefaultPollOptions(0), report)
		rollout.WarnForced(ctx, remote, a.cluster, a.force, cluster.DefaultPollOptions(0), func(text string) { report("warning: " + text) })
	})

	return remote, nil
}
