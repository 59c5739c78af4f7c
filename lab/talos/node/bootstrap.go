// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talos-proxmox/talos-proxmox/lab/fault"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/disks"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/etcd"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"
)

func (n *Node) Bootstrap(in *machine.BootstrapRequest) error {
	_, skewed := n.holds(fault.ClockSkew)
	switch {
	case !n.bootstrapAllowed():
		return status.Error(codes.FailedPrecondition, "bootstrap is not available yet")
	case !machineconfig.IsControlPlane(n.Config()):
		return status.Error(codes.FailedPrecondition, "bootstrap can only be performed on a control plane node")
	case skewed:
		return status.Error(codes.FailedPrecondition, "time is not in sync yet")
	case n.isBootstrapping():
		return nil // etcd has written nothing yet
	case n.Disk.Read().Etcd != nil:
		return status.Error(codes.AlreadyExists, "etcd data directory is not empty")
	}

	var restore []byte
	if in.GetRecoverEtcd() {
		n.mu.Lock()
		restore = n.upload
		n.mu.Unlock()
		if len(restore) == 0 {
			return fmt.Errorf("error verifying snapshot: stat /var/lib/etcd.snapshot: no such file or directory")
		}
	}

	return n.bootstrapEtcd(restore)
}

// bootstrapAllowed reports whether the container runtime is up.
func (n *Node) bootstrapAllowed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.criReady
}

// bootstrapEtcd creates a new etcd cluster with this node as its only member.
func (n *Node) bootstrapEtcd(restore []byte) error {
	addr, ok := n.primaryAddress()
	if !ok {
		return status.Error(codes.FailedPrecondition, "etcd spec is not ready yet")
	}

	id := etcd.NewMemberID()
	r := &etcd.Replica{
		Cluster: etcd.NewID(), Talos: n.ClusterID(), Member: id, Revision: 1,
		Members: []etcd.Member{{ID: id, Name: n.Hostname(), Addr: addr}},
	}

	n.bootMu.Lock()
	defer n.bootMu.Unlock()

	if n.Disk.Read().Etcd != nil {
		return status.Error(codes.AlreadyExists, "etcd data directory is not empty")
	}
	if err := n.Nodes.addReplica(r.Cluster, id); err != nil {
		return err
	}
	g := n.Nodes.openGroup(r, n.VM.Net, n.VM.Clock, n.VM.Trace)
	g.Kube.SetRestore(restore)
	if err := n.Disk.Update(func(in *disks.Installation) { in.Etcd = r }); err != nil {
		return err
	}
	n.mu.Lock()
	n.bootstrapping = true
	n.mu.Unlock()
	n.Poke()

	return nil
}

// isBootstrapping reports whether a bootstrap was accepted whose etcd has not started yet.
func (n *Node) isBootstrapping() bool {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.bootstrapping && n.etcd == nil
}
