// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/health"
	"github.com/talos-proxmox/talos-proxmox/internal/talosapi"
)

// lateAccess opens a cluster's APIs with credentials that become known during the run.
type lateAccess struct {
	cluster cluster.Cluster
	known   chan struct{}

	// where makes sure that it is said once a run how the nodes stand.
	where sync.Once

	mu          sync.Mutex
	talosconfig string
	remote      *talosapi.Remote
}

func newLateAccess(c cluster.Cluster) *lateAccess {
	return &lateAccess{cluster: c, known: make(chan struct{})}
}

// set hands the credentials over, once.
func (a *lateAccess) set(talosconfig string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.talosconfig == "" {
		a.talosconfig = talosconfig
		close(a.known)
	}
}

// handOver is how long the credentials may take from their resource to here: hooks run on resources
// that depend on it, so they are on their way.
const handOver = 30 * time.Second

// open is the cluster's APIs, the same for the whole run.
func (a *lateAccess) open(ctx context.Context) (*talosapi.Remote, error) {
	timer := time.NewTimer(handOver)
	defer timer.Stop()
	select {
	case <-a.known:
	case <-ctx.Done():
		return nil, fmt.Errorf("cluster %q: %w", a.cluster.Name, ctx.Err())
	case <-timer.C:
		return nil, errors.New("the cluster's credentials are not known: its secrets are missing from the state")
	}

	a.mu.Lock()
	defer a.mu.Unlock()
	if a.remote != nil {
		return a.remote, nil
	}
	remote, err := talosapi.NewRemote(a.talosconfig, a.cluster)
	if err != nil {
		return nil, fmt.Errorf("cluster %q: %w", a.cluster.Name, err)
	}
	a.remote = remote

	return remote, nil
}

// openLiving is the APIs of a cluster that is about to be changed. Whoever opens it first in a run says
// how the nodes stand, those that leave too, where an earlier run has left them apart.
func (a *lateAccess) openLiving(
	ctx context.Context, report func(string), leaving ...cluster.Member,
) (*talosapi.Remote, error) {
	remote, err := a.open(ctx)
	if err != nil {
		return nil, err
	}
	a.where.Do(func() {
		c := a.cluster
		c.Members = append(slices.Clone(c.Members), leaving...)
		health.ReportStatus(ctx, remote, c, cluster.DefaultPollOptions(0), report)
	})

	return remote, nil
}
