// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/talos-proxmox/talos-proxmox/internal/operations"
)

// lateAccess opens a cluster's APIs with credentials that become known during the run.
type lateAccess struct {
	cluster operations.Cluster
	known   chan struct{}

	mu          sync.Mutex
	talosconfig string
	remote      *operations.Remote
}

func newLateAccess(c operations.Cluster) *lateAccess {
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
func (a *lateAccess) open(ctx context.Context) (*operations.Remote, error) {
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
	remote, err := operations.NewRemote(a.talosconfig, a.cluster)
	if err != nil {
		return nil, fmt.Errorf("cluster %q: %w", a.cluster.Name, err)
	}
	a.remote = remote

	return remote, nil
}
