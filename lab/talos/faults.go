// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"cmp"
	"context"
	"path"
	"slices"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talos-proxmox/talos-proxmox/lab/fault"
)

// lossDelay is how long, in real time, an answer gets to reach its caller before the node is lost.
const lossDelay = 50 * time.Millisecond

// names are what a fault may call the node.
func (n *node) names() []string {
	names := append(slices.Clone(n.m.Names), n.hostname())
	if a, ok := n.primaryAddress(); ok {
		names = append(names, a.String())
	}

	return names
}

// holds tells whether a lasting fault hits the node.
func (n *node) holds(k fault.Kind) (fault.Fault, bool) {
	if n.m.Faults == nil {
		return fault.Fault{}, false
	}

	return n.m.Faults.Holds(k, fault.About{"node": n.names()})
}

// answers lets a call of the node's API go wrong.
func (n *node) answers(ctx context.Context, req any, method string, next grpc.UnaryHandler) (any, error) {
	if n.m.Faults == nil {
		return next(ctx, req)
	}
	if err := n.befalls(ctx, method); err != nil {
		return nil, err
	}
	apply, ok := req.(*machine.ApplyConfigurationRequest)
	if !ok || apply.GetDryRun() {
		return next(ctx, req)
	}

	if n.lostAt(fault.BeforeApply, 0) {
		return n.dies(ctx)
	}
	reply, err := next(ctx, req)
	if err != nil {
		return nil, err
	}
	if n.lostAt(fault.DuringApply, 0) {
		return n.dies(ctx)
	}
	n.lostAt(fault.AfterApply, lossDelay)

	return reply, nil
}

// befalls lets a call of the node's API be slow, silent or refused.
func (n *node) befalls(ctx context.Context, method string) error {
	if n.m.Faults == nil {
		return nil
	}
	a, err := n.m.Faults.Befall(ctx, fault.Call{
		API: fault.Talos, Name: path.Base(method), Node: n.names(), Scale: n.m.Clock.Scale,
	})
	switch {
	case err != nil:
		return status.FromContextError(cmp.Or(ctx.Err(), context.Canceled)).Err()
	case a != nil:
		return status.Error(codes.Unavailable, a.Message)
	}

	return nil
}

// lostAt kills the node after a delay where a fault says so, and tells whether it does.
func (n *node) lostAt(when string, delay time.Duration) bool {
	f, yes := n.m.Faults.Strike(fault.NodeLost, n.object(), fault.About{"node": n.names(), "when": {when}})
	if yes {
		time.AfterFunc(delay, func() { n.m.Lose(f.Over) })
	}

	return yes
}

// dies answers nobody: the connection breaks with the node.
func (n *node) dies(ctx context.Context) (any, error) {
	<-ctx.Done()

	return nil, status.FromContextError(ctx.Err()).Err()
}

// noEtcd is why etcd does not run, "" when nothing keeps it from it; starting tells that it does not
// run yet.
func (n *node) noEtcd(starting bool) string {
	if _, yes := n.holds(fault.EtcdLost); yes {
		return `Error running Containerd(etcd), going to restart forever: task "etcd" failed: exit code 1`
	}
	if _, yes := n.holds(fault.ClockSkew); yes && starting {
		return "Waiting for time sync"
	}

	return ""
}

// awaitFault waits until faults change, or the node does.
func (n *node) awaitFault(ctx context.Context, changed <-chan struct{}) {
	select {
	case <-changed:
	case <-n.pokes():
	case <-ctx.Done():
	}
}

// skew is how far the node's clock is ahead.
func (n *node) skew() time.Duration {
	f, _ := n.holds(fault.ClockSkew)

	return f.Duration("by")
}

// validity is from when to when the certificates are valid that the node issues now.
func (n *node) validity() (from, to time.Time) {
	now := time.Now().Add(n.skew())
	if _, yes := n.holds(fault.CertificateExpired); yes {
		now = now.Add(-2 * certificateLifetime)
	}

	return now.Add(-time.Hour), now.Add(certificateLifetime)
}

// flapping listens as listen does, but for the times in which a fault keeps the API server down.
func (n *node) flapping(listen func() (stop func())) (stop func()) {
	if n.m.Faults == nil {
		return listen()
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	open := listen()

	go func() {
		defer close(done)
		for ctx.Err() == nil {
			changed := n.m.Faults.Changed()
			f, yes := n.holds(fault.KubeFlap)
			if !yes {
				select {
				case <-changed:
				case <-ctx.Done():
				}

				continue
			}
			n.pause(ctx, f, "up")
			if ctx.Err() != nil {
				return
			}
			open()
			n.pause(ctx, f, "down")
			open = listen()
		}
	}()

	return func() {
		cancel()
		<-done
		open()
	}
}

// pause waits as long as a fault says, or until it is removed.
func (n *node) pause(ctx context.Context, f fault.Fault, key string) {
	t := time.NewTimer(n.m.Clock.Scale(f.Duration(key)))
	defer t.Stop()
	select {
	case <-t.C:
	case <-f.Over:
	case <-ctx.Done():
	}
}
