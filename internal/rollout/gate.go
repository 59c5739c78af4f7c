// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

// Gate lets nodes go down one after the other: everything that can take a node of one cluster down in
// one run passes it. A control plane goes alone; workers may go together, as many as were allowed.
// After the first failure nobody gets a turn any more.
//
// The zero value is not ready: use [NewGate].
type Gate struct {
	workers int

	mu      sync.Mutex
	changed chan struct{}
	held    map[string]cluster.Member
	broken  *broken
}

// Others are the other nodes that are down at the moment of the call: they come and go while one looks.
type Others func() []cluster.Member

// broken is the failure that closed the gate.
type broken struct {
	node   string
	reason error
}

// NewGate makes a gate that lets that many workers be down at once; at least one.
func NewGate(workers int) *Gate {
	return &Gate{workers: max(workers, 1), changed: make(chan struct{}), held: map[string]cluster.Member{}}
}

// Closed is what everybody gets after the first failure.
type Closed struct {
	// Node that is left alone.
	Node string
	// Failed is the node whose step did not succeed.
	Failed string
	// Reason is why it did not.
	Reason error
}

// Error says who is left alone and why.
func (e *Closed) Error() string {
	return fmt.Sprintf("node %s is left as it is, since node %s failed before: %v", e.Node, e.Failed, e.Reason)
}

// Unwrap is the first failure.
func (e *Closed) Unwrap() error { return e.Reason }

// Enter waits for a turn, then for ready to find that the node may go, whatever the others that are down
// do meanwhile; when it fails the gate closes for everybody. The wait is bounded by the context. A node
// that is inside already is let through, so that a step can be repeated.
func (g *Gate) Enter(ctx context.Context, m cluster.Member, ready func(context.Context, Others) error) error {
	if err := g.acquire(ctx, m); err != nil {
		return err
	}
	if err := ready(ctx, g.others(m)); err != nil {
		err = fmt.Errorf("before node %s goes down: %w", m, err)
		g.Fail(m, err)

		return err
	}

	return nil
}

// others looks who is inside beside the node.
func (g *Gate) others(m cluster.Member) Others {
	return func() []cluster.Member {
		g.mu.Lock()
		defer g.mu.Unlock()
		held := maps.Clone(g.held)
		delete(held, m.Name)

		return inOrder(held)
	}
}

// turn waits until the node may take a place, and takes it.
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
			return fmt.Errorf("node %s got no turn: %v is still down: %w", m, inside, ctx.Err())
		}
	}
}

// free says whether the node fits in beside those inside. Call it locked.
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

// Leave ends a turn after back has found the node back and the cluster well, whatever the others that
// are down do meanwhile. A node that is not inside has nothing to leave.
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

// Fail closes the gate for everybody, when the node is inside; else it does nothing.
func (g *Gate) Fail(m cluster.Member, reason error) {
	g.mu.Lock()
	if _, inside := g.held[m.Name]; inside && g.broken == nil {
		g.broken = &broken{node: m.String(), reason: reason}
	}
	g.mu.Unlock()
	g.leave(m)
}

func (g *Gate) leave(m cluster.Member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.held, m.Name)
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
