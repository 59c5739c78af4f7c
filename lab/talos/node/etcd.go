// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config"

	"github.com/talos-proxmox/talos-proxmox/lab/talos/disks"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/etcd"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/events"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/nodepki"
)

const (
	ServiceEtcd = "etcd"

	etcdStart       = 4 * time.Second
	etcdJoinRetry   = 3 * time.Second
	etcdPromote     = 6 * time.Second
	etcdLeaveBudget = 5 * time.Minute
	etcdLeaveRetry  = 10 * time.Second
)

// runEtcd runs the etcd service of a control plane until ctx ends.
func (n *Node) runEtcd(ctx context.Context) {
	n.Services.Set(ServiceEtcd, events.StatePreparing, "Running pre state", false)

	waitingFor := ""
	for ctx.Err() == nil {
		if n.hasLeft() || n.IsStopping() {
			n.Services.Set(ServiceEtcd, events.StateFinished, "Service finished", false)
			<-ctx.Done()

			return
		}

		changed := n.VM.Faults.Changed()
		if why := n.noEtcd(true); why != "" {
			n.Services.Set(ServiceEtcd, events.StateWaiting, why, false)
			n.awaitFault(ctx, changed)

			continue
		}

		replica := n.Disk.Read().Etcd
		if replica == nil {
			if err := n.joinEtcd(ctx); err != nil {
				n.Services.Set(ServiceEtcd, events.StatePreparing, "Running pre state", false)
				if err.Error() != waitingFor { // tried many times a second: say it once
					waitingFor = err.Error()
					n.Console("etcd is waiting to join the cluster", "error", err)
				}
				n.waitPoke(ctx, etcdJoinRetry)

				continue
			}
			replica = n.Disk.Read().Etcd
		} else if n.VM.Clock.Sleep(ctx, etcdStart) != nil {
			return
		}
		if replica != nil {
			n.runMember(ctx, replica)
		}
	}
}

// joinEtcd adds this node to the running etcd of its cluster.
func (n *Node) joinEtcd(ctx context.Context) error {
	addr, ok := n.primaryAddress()
	if !ok {
		return errors.New("the node has no address")
	}

	err := errors.New("no control plane of this cluster runs etcd")
	for _, g := range n.Nodes.GroupsOf(n.ClusterID(), n.VM.Net) {
		peer := g.AnyRunning()
		if peer == nil {
			continue
		}
		if !nodepki.SameCertificate(etcdCA(n.Config()), etcdCA(peer.Config())) {
			err = errors.New("x509: certificate signed by unknown authority")

			continue
		}

		end := n.VM.Trace.Begin("etcd.join", n.Object(), n.Attrs())
		id := etcd.NewMemberID()
		if err = g.Join(id, n.Hostname(), addr, n); err != nil {
			end(err)

			continue
		}
		if err = n.Nodes.addReplica(g.UID, id); err != nil {
			end(err)

			return err
		}
		n.setGroup(g, id)
		err = n.VM.Clock.Sleep(ctx, etcdPromote)
		if err == nil {
			err = g.Promote(id)
		}
		end(err)
		if err != nil {
			g.Detach(id, n) // the learner is on the disk and goes on when etcd starts again
			n.setGroup(nil, 0)
		}

		return err
	}

	return err
}

// runMember runs a member whose data are on the disk.
func (n *Node) runMember(ctx context.Context, r *etcd.Replica) {
	g := n.Nodes.openGroup(r, n.VM.Net, n.VM.Clock, n.VM.Trace)
	if err := n.Nodes.addReplica(g.UID, r.Member); err != nil {
		n.Console("etcd", "error", err)
	}
	if err := g.Attach(r, n); err != nil {
		n.Services.Set(ServiceEtcd, events.StateFailed, err.Error(), false)
		n.waitPoke(ctx, etcdLeaveRetry)

		return
	}
	n.setGroup(g, r.Member)
	defer func() {
		g.Detach(r.Member, n)
		n.setGroup(nil, 0)
	}()

	for ctx.Err() == nil && !n.hasLeft() && !n.IsStopping() && n.noEtcd(false) == "" {
		changed, faults := g.Watch(), n.VM.Faults.Changed()
		v := g.View()
		if !v.Alive[r.Member] {
			n.Services.Set(ServiceEtcd, events.StateFailed, "the member has been permanently removed from the cluster", false)

			return
		}
		if m := g.Member(r.Member); m != nil && m.Learner && v.Quorum {
			_ = g.Promote(r.Member) // tried again at the next change
		}
		switch m := g.Member(r.Member); {
		case m != nil && m.Learner:
			n.Services.Set(ServiceEtcd, events.StateRunning,
				"Health check failed: etcdserver: rpc not supported for learner", false)
		case v.Quorum:
			n.Services.Set(ServiceEtcd, events.StateRunning, "Health check successful", true)
		default:
			n.Services.Set(ServiceEtcd, events.StateRunning, "Health check failed: context deadline exceeded", false)
		}

		select {
		case <-ctx.Done():
		case <-changed:
		case <-faults:
		case <-n.pokes():
		}
	}
}

// LeaveEtcd takes this node's member out of the cluster and removes its data.
func (n *Node) LeaveEtcd(ctx context.Context) (err error) {
	g, id := n.Group()
	if g == nil {
		return errors.New("error getting local etcd member ID: etcd is not running")
	}

	end := n.VM.Trace.Begin("etcd.leave", n.Object(), n.Attrs())
	defer func() { end(err) }()

	ctx, cancel := context.WithTimeout(ctx, max(n.VM.Clock.Scale(etcdLeaveBudget), time.Second))
	defer cancel()

	for {
		err = g.Remove(id)
		if err == nil || errors.Is(err, etcd.ErrMemberNotFound) {
			break
		}
		if !errors.Is(err, etcd.ErrUnhealthy) {
			return fmt.Errorf("1 error(s) occurred:\n\tfailed to remove member %d: %w", id, err)
		}
		if n.VM.Clock.Sleep(ctx, etcdLeaveRetry) != nil {
			return fmt.Errorf("1 error(s) occurred:\n\tfailed to remove member %d: %w", id, err)
		}
	}

	n.setLeft()
	if err := n.Disk.Update(func(in *disks.Installation) { in.Etcd = nil }); err != nil {
		return err
	}
	n.Poke()

	return n.Nodes.dropReplica(g.UID, id)
}

// StoreReplica writes a member's view of the cluster to its disk.
func (n *Node) StoreReplica(r *etcd.Replica) {
	if n.Disk == nil || n.hasLeft() {
		return
	}
	if err := n.Disk.Update(func(in *disks.Installation) { in.Etcd = r }); err != nil {
		n.Console("etcd", "error", err)
	}
}

func etcdCA(cfg config.Provider) []byte {
	if cfg == nil || cfg.Cluster() == nil || cfg.Cluster().Etcd() == nil || cfg.Cluster().Etcd().CA() == nil {
		return nil
	}

	return cfg.Cluster().Etcd().CA().Crt
}
