// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

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
	"github.com/talos-proxmox/talos-proxmox/lab/talos/nodepki"
)

// lossDelay is how long, in real time, an answer gets to reach its caller before the node is lost.
const lossDelay = 50 * time.Millisecond

// names returns what a fault may call the node.
func (n *Node) names() []string {
	names := append(slices.Clone(n.VM.Names), n.Hostname())
	if a, ok := n.primaryAddress(); ok {
		names = append(names, a.String())
	}

	return names
}

// holds reports whether a lasting fault hits the node.
func (n *Node) holds(k fault.Kind) (fault.Fault, bool) {
	if n.VM.Faults == nil {
		return fault.Fault{}, false
	}

	return n.VM.Faults.Holds(k, fault.About{"node": n.names()})
}

// InjectFaults lets a call of the node's API go wrong.
func (n *Node) InjectFaults(ctx context.Context, req any, method string, next grpc.UnaryHandler) (any, error) {
	if n.VM.Faults == nil {
		return next(ctx, req)
	}
	if err := n.InjectFault(ctx, method); err != nil {
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

// InjectFault lets a call of the node's API be slow, silent or refused.
func (n *Node) InjectFault(ctx context.Context, method string) error {
	if n.VM.Faults == nil {
		return nil
	}
	a, err := n.VM.Faults.Befall(ctx, fault.Call{
		API: fault.Talos, Name: path.Base(method), Node: n.names(),
	})
	switch {
	case err != nil:
		return status.FromContextError(cmp.Or(ctx.Err(), context.Canceled)).Err()
	case a != nil:
		return status.Error(codes.Unavailable, a.Message)
	}

	return nil
}

// lostAt kills the node after a delay where a fault says so, and reports whether it does.
func (n *Node) lostAt(when string, delay time.Duration) bool {
	f, yes := n.VM.Faults.Strike(fault.NodeLost, n.Object(), fault.About{"node": n.names(), "when": {when}})
	if yes {
		time.AfterFunc(delay, func() { n.VM.Lose(f.Over) })
	}

	return yes
}

// dies answers nobody: the connection breaks with the node.
func (n *Node) dies(ctx context.Context) (any, error) {
	<-ctx.Done()

	return nil, status.FromContextError(ctx.Err()).Err()
}

// noEtcd returns why etcd does not run, "" when nothing keeps it from it; starting tells that it does not
// run yet.
func (n *Node) noEtcd(starting bool) string {
	if _, yes := n.holds(fault.EtcdLost); yes {
		return `Error running Containerd(etcd), going to restart forever: task "etcd" failed: exit code 1`
	}
	if _, yes := n.holds(fault.ClockSkew); yes && starting {
		return "Waiting for time sync"
	}

	return ""
}

// awaitFault waits until faults change, or the node does.
func (n *Node) awaitFault(ctx context.Context, changed <-chan struct{}) {
	select {
	case <-changed:
	case <-n.pokes():
	case <-ctx.Done():
	}
}

// Skew returns how far the node's clock is ahead.
func (n *Node) Skew() time.Duration {
	f, _ := n.holds(fault.ClockSkew)

	return f.Duration("by")
}

// Validity returns from when to when the certificates are valid that the node issues now.
func (n *Node) Validity() (from, to time.Time) {
	now := time.Now().Add(n.Skew())
	if _, yes := n.holds(fault.CertificateExpired); yes {
		now = now.Add(-2 * nodepki.CertificateLifetime)
	}

	return now.Add(-time.Hour), now.Add(nodepki.CertificateLifetime)
}

// flapping listens as listen does, but for the times in which a fault keeps the API server down.
func (n *Node) flapping(listen func() (stop func())) (stop func()) {
	if n.VM.Faults == nil {
		return listen()
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	open := listen()

	go func() {
		defer close(done)
		for ctx.Err() == nil {
			changed := n.VM.Faults.Changed()
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
func (n *Node) pause(ctx context.Context, f fault.Fault, key string) {
	t := time.NewTimer(f.Duration(key))
	defer t.Stop()
	select {
	case <-t.C:
	case <-f.Over:
	case <-ctx.Done():
	}
}
