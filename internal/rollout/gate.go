// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package rollout changes a living cluster one node at a time: it bootstraps, upgrades, drains and retires
// nodes, and holds the gate through which everything passes that takes a node down.
//
// Every step looks at the node, acts, and verifies, so that an interrupted step can be repeated. Every wait
// is bounded by its context or by a timeout that the caller names.
package rollout

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

// Gate lets nodes go down one after the other: everything that can take a node of one cluster down in one run
// passes it. A control plane goes down alone; workers may go together, as many as allowed. After the first
// failure nobody enters any more.
//
// The zero value is not ready: use [NewGate].
type Gate struct {
	workers int
	// lock keeps other runs out while a node is inside; nil for none.
	lock *Lock

	mu      sync.Mutex
	changed chan struct{}
	held    map[string]cluster.Member
	broken  *broken
	tried   *cluster.Member
}

// Others returns the other nodes that are down at the moment of the call.
type Others func() []cluster.Member

// broken records the failure that closed the gate.
type broken struct {
	node   string
	reason error
}

// NewGate returns a gate that lets that many workers, at least one, be down at the same time.
func NewGate(workers int) *Gate {
	return &Gate{workers: max(workers, 1), changed: make(chan struct{}), held: map[string]cluster.Member{}}
}

// WithLock has the gate hold a lock while a node is inside, and returns the gate.
func (g *Gate) WithLock(l *Lock) *Gate {
	g.lock = l

	return g
}

// Closed reports that an earlier step failed: nothing else passes the gate in this run.
type Closed struct {
	// Node that is left alone.
	Node string
	// Failed is the node whose step did not succeed.
	Failed string
	// Reason is why it did not.
	Reason error
}

// Error names the node that is left alone and the reason.
func (e *Closed) Error() string {
	return fmt.Sprintf("node %s is left unchanged because node %s failed before: %v", e.Node, e.Failed, e.Reason)
}

// Unwrap returns the first failure.
func (e *Closed) Unwrap() error { return e.Reason }

// Enter waits for a place, then for ready to confirm that the node may go down; if that fails the gate closes
// for everybody. The context bounds the wait. A node that is inside already passes, so that a step can be
// repeated.
func (g *Gate) Enter(ctx context.Context, m cluster.Member, ready func(context.Context, Others) error) error {
	if err := g.acquire(ctx, m); err != nil {
		return err
	}
	err := g.lockCluster(ctx)
	if err == nil {
		err = ready(ctx, g.others(m))
	}
	if err != nil {
		err = fmt.Errorf("before node %s goes down: %w", m, err)
		g.Fail(m, err)

		return err
	}

	return nil
}

func (g *Gate) lockCluster(ctx context.Context) error {
	if g.lock == nil {
		return nil
	}

	return g.lock.acquire(ctx)
}

// others returns a function that lists who is inside beside the node.
func (g *Gate) others(m cluster.Member) Others {
	return func() []cluster.Member {
		g.mu.Lock()
		defer g.mu.Unlock()
		held := maps.Clone(g.held)
		delete(held, m.Name)

		return inOrder(held)
	}
}

// acquire waits until the node may take a place, and takes it.
func (g *Gate) acquire(ctx context.Context, m cluster.Member) error {
	for {
		g.mu.Lock()
		if g.broken != nil {
			b := g.broken
			g.mu.Unlock()

			return &Closed{Node: m.String(), Failed: b.node, Reason: b.reason}
		}
		if g.free(m) {
			g.held[m.Name] = m
			g.mu.Unlock()

			return nil
		}
		changed, inside := g.changed, inOrder(g.held)
		g.mu.Unlock()

		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("node %s could not go down: %v is still down: %w", m, inside, ctx.Err())
		}
	}
}

// free reports whether the node fits in beside those inside. The caller holds the lock.
func (g *Gate) free(m cluster.Member) bool {
	if _, inside := g.held[m.Name]; inside {
		return true
	}
	if len(g.held) == 0 {
		return true
	}
	if m.ControlPlane || len(g.held) >= g.workers {
		return false
	}
	for _, other := range g.held {
		if other.ControlPlane {
			return false
		}
	}

	return true
}

// Leave gives the place back after back confirmed that the node is back and the cluster healthy. A node that
// is not inside has nothing to give back.
func (g *Gate) Leave(ctx context.Context, m cluster.Member, back func(context.Context, Others) error) error {
	g.mu.Lock()
	_, inside := g.held[m.Name]
	g.mu.Unlock()
	if !inside {
		return nil
	}
	if err := back(ctx, g.others(m)); err != nil {
		err = fmt.Errorf("after node %s was down: %w", m, err)
		g.Fail(m, err)

		return err
	}
	g.leave(m)

	return nil
}

// Inside reports whether the node holds a place.
func (g *Gate) Inside(m cluster.Member) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, inside := g.held[m.Name]

	return inside
}

// Fail closes the gate for everybody, if the node is inside; else it does nothing.
func (g *Gate) Fail(m cluster.Member, reason error) {
	g.mu.Lock()
	if _, inside := g.held[m.Name]; inside && g.broken == nil {
		g.broken = &broken{node: m.String(), reason: reason}
	}
	g.mu.Unlock()
	g.leave(m)
}

// noteTried remembers that a node was healthy with a configuration that it tried in this run.
func (g *Gate) noteTried(m cluster.Member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tried = &m
}

// lastTried returns the last node that tried a configuration in this run.
func (g *Gate) lastTried() (cluster.Member, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.tried == nil {
		return cluster.Member{}, false
	}

	return *g.tried, true
}

func (g *Gate) leave(m cluster.Member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.held, m.Name)
	if len(g.held) == 0 && g.lock != nil {
		g.lock.release()
	}
	close(g.changed)
	g.changed = make(chan struct{})
}

func inOrder(members map[string]cluster.Member) []cluster.Member {
	list := make([]cluster.Member, 0, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		list = append(list, members[name])
	}

	return list
}
