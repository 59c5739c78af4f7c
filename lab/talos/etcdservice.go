// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	serviceEtcd = "etcd"

	etcdStart       = 4 * time.Second
	etcdJoinRetry   = 3 * time.Second
	etcdPromote     = 6 * time.Second
	etcdLeaveBudget = 5 * time.Minute
	etcdLeaveRetry  = 10 * time.Second
)

// runEtcd is the etcd service of a control plane, until ctx ends.
func (n *node) runEtcd(ctx context.Context) {
	n.services.set(serviceEtcd, statePreparing, "Running pre state", false)

	waitingFor := ""
	for ctx.Err() == nil {
		if n.hasLeft() || n.isStopping() {
			n.services.set(serviceEtcd, stateFinished, "Service finished", false)
			<-ctx.Done()

			return
		}

		changed := n.m.Faults.Changed()
		if why := n.noEtcd(true); why != "" {
			n.services.set(serviceEtcd, stateWaiting, why, false)
			n.awaitFault(ctx, changed)

			continue
		}

		replica := n.disk.read().Etcd
		if replica == nil {
			if err := n.joinEtcd(ctx); err != nil {
				n.services.set(serviceEtcd, statePreparing, "Running pre state", false)
				if err.Error() != waitingFor { // tried many times a second: say it once
					waitingFor = err.Error()
					n.console("etcd is waiting to join the cluster", "error", err)
				}
				n.waitPoke(ctx, etcdJoinRetry)

				continue
			}
			replica = n.disk.read().Etcd
		} else if n.m.Clock.Sleep(ctx, etcdStart) != nil {
			return
		}
		if replica != nil {
			n.runMember(ctx, replica)
		}
	}
}

// joinEtcd adds this node to the running etcd of its cluster.
func (n *node) joinEtcd(ctx context.Context) error {
	addr, ok := n.primaryAddress()
	if !ok {
		return errors.New("the node has no address")
	}

	err := errors.New("no control plane of this cluster runs etcd")
	for _, g := range n.nodes.groupsOf(n.clusterID(), n.m.Net) {
		peer := g.anyRunning()
		if peer == nil {
			continue
		}
		if !sameCertificate(etcdCA(n.config()), etcdCA(peer.config())) {
			err = errors.New("x509: certificate signed by unknown authority")

			continue
		}

		end := n.m.Trace.Begin("etcd.join", n.object(), n.attrs())
		id := newMemberID()
		if err = g.join(id, n.hostname(), addr, n); err != nil {
			end(err)

			continue
		}
		if err = n.nodes.addReplica(g.uid, id); err != nil {
			end(err)

			return err
		}
		n.setGroup(g, id)
		err = n.m.Clock.Sleep(ctx, etcdPromote)
		if err == nil {
			err = g.promote(id)
		}
		end(err)
		if err != nil {
			g.detach(id, n) // the learner is on the disk and goes on when etcd starts again
			n.setGroup(nil, 0)
		}

		return err
	}

	return err
}

// runMember runs a member whose data are on the disk.
func (n *node) runMember(ctx context.Context, r *etcdReplica) {
	g := n.nodes.openGroup(r, n.m.Net, n.m.Clock, n.m.Trace)
	if err := n.nodes.addReplica(g.uid, r.Member); err != nil {
		n.console("etcd", "error", err)
	}
	if err := g.attach(r, n); err != nil {
		n.services.set(serviceEtcd, stateFailed, err.Error(), false)
		n.waitPoke(ctx, etcdLeaveRetry)

		return
	}
	n.setGroup(g, r.Member)
	defer func() {
		g.detach(r.Member, n)
		n.setGroup(nil, 0)
	}()

	for ctx.Err() == nil && !n.hasLeft() && !n.isStopping() && n.noEtcd(false) == "" {
		changed, faults := g.watch(), n.m.Faults.Changed()
		v := g.view()
		if !v.alive[r.Member] {
			n.services.set(serviceEtcd, stateFailed, "the member has been permanently removed from the cluster", false)

			return
		}
		if m := g.member(r.Member); m != nil && m.Learner && v.quorum {
			_ = g.promote(r.Member) // tried again at the next change
		}
		if v.quorum {
			n.services.set(serviceEtcd, stateRunning, "Health check successful", true)
		} else {
			n.services.set(serviceEtcd, stateRunning, "Health check failed: context deadline exceeded", false)
		}

		select {
		case <-ctx.Done():
		case <-changed:
		case <-faults:
		case <-n.pokes():
		}
	}
}

// bootstrapEtcd creates a new etcd cluster with this node as its only member.
func (n *node) bootstrapEtcd(restore []byte) error {
	addr, ok := n.primaryAddress()
	if !ok {
		return status.Error(codes.FailedPrecondition, "etcd spec is not ready yet")
	}

	id := newMemberID()
	r := &etcdReplica{
		Cluster: newID(), Talos: n.clusterID(), Member: id, Revision: 1,
		Members: []etcdMember{{ID: id, Name: n.hostname(), Addr: addr}},
	}

	n.bootMu.Lock()
	defer n.bootMu.Unlock()

	if n.disk.read().Etcd != nil {
		return status.Error(codes.AlreadyExists, "etcd data directory is not empty")
	}
	if err := n.nodes.addReplica(r.Cluster, id); err != nil {
		return err
	}
	g := n.nodes.openGroup(r, n.m.Net, n.m.Clock, n.m.Trace)
	g.kube.setRestore(restore)
	if err := n.disk.update(func(in *installation) { in.Etcd = r }); err != nil {
		return err
	}
	n.poke()

	return nil
}

// leaveEtcd takes this node's member out of the cluster and removes its data.
func (n *node) leaveEtcd(ctx context.Context) (err error) {
	g, id := n.group()
	if g == nil {
		return errors.New("error getting local etcd member ID: etcd is not running")
	}

	end := n.m.Trace.Begin("etcd.leave", n.object(), n.attrs())
	defer func() { end(err) }()

	ctx, cancel := context.WithTimeout(ctx, max(n.m.Clock.Scale(etcdLeaveBudget), time.Second))
	defer cancel()

	for {
		err = g.remove(id)
		if err == nil || errors.Is(err, errMemberNotFound) {
			break
		}
		if !errors.Is(err, errUnhealthy) {
			return fmt.Errorf("failed to remove member %d: %w", id, err)
		}
		if n.m.Clock.Sleep(ctx, etcdLeaveRetry) != nil {
			return fmt.Errorf("failed to remove member %d: %w", id, err)
		}
	}

	n.setLeft()
	if err := n.disk.update(func(in *installation) { in.Etcd = nil }); err != nil {
		return err
	}
	n.poke()

	return n.nodes.dropReplica(g.uid, id)
}

// storeReplica writes a member's view of the cluster to its disk.
func (n *node) storeReplica(r *etcdReplica) {
	if n.disk == nil || n.hasLeft() {
		return
	}
	if err := n.disk.update(func(in *installation) { in.Etcd = r }); err != nil {
		n.console("etcd", "error", err)
	}
}

func (g *etcdGroup) anyRunning() *node {
	if nodes := g.running(); len(nodes) > 0 {
		return nodes[0]
	}

	return nil
}

func (g *etcdGroup) member(id uint64) *etcdMember {
	g.mu.Lock()
	defer g.mu.Unlock()

	if m := g.memberLocked(id); m != nil {
		c := *m

		return &c
	}

	return nil
}

func etcdCA(cfg config.Provider) []byte {
	if cfg == nil || cfg.Cluster() == nil || cfg.Cluster().Etcd() == nil || cfg.Cluster().Etcd().CA() == nil {
		return nil
	}

	return cfg.Cluster().Etcd().CA().Crt
}
