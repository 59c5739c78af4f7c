// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/talos-proxmox/talos-proxmox/lab/talos/controlplane"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/etcd"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/node"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/nodenet"
)

const (
	etcdVersion   = "3.6.6"
	etcdDBSize    = 20 << 20
	snapshotChunk = 1 << 20
)

// controlPlaneOnly refuses what only control planes do.
func (s *machineServer) controlPlaneOnly(what string) error {
	if machineconfig.IsControlPlane(s.node.Config()) {
		return nil
	}

	return status.Errorf(codes.Unimplemented, "%s is only available on control plane nodes", what)
}

// etcdPoll is how often, in real time, a client looks for an etcd that answers.
const etcdPoll = 50 * time.Millisecond

// etcdClient finds an etcd that answers: this node's own, or that of another control plane. Talos waits for one as long
// as its caller does.
func (s *machineServer) etcdClient(ctx context.Context, local bool) (*node.EtcdCluster, error) {
	for {
		if g, _ := s.node.Group(); g != nil {
			return g, nil
		}
		if !local {
			for _, g := range s.node.Nodes.GroupsOf(s.node.ClusterID(), s.node.VM.Net) {
				if g.AnyRunning() != nil {
					return g, nil
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		case <-time.After(etcdPoll):
		}
	}
}

// etcdWithLeader returns what etcdClient does, for requests that need a leader.
func (s *machineServer) etcdWithLeader(ctx context.Context, what string, local bool) (*node.EtcdCluster, error) {
	if err := s.controlPlaneOnly(what); err != nil {
		return nil, err
	}
	g, err := s.etcdClient(ctx, local)
	if err != nil {
		return nil, err
	}
	if !g.Quorum() {
		return nil, status.Error(codes.Unavailable, etcd.ErrNoLeader.Error())
	}

	return g, nil
}

// EtcdMemberList lists the members of the cluster.
func (s *machineServer) EtcdMemberList(
	ctx context.Context, in *machine.EtcdMemberListRequest,
) (*machine.EtcdMemberListResponse, error) {
	g, err := s.etcdWithLeader(ctx, "member list", in.GetQueryLocal())
	if err != nil {
		return nil, err
	}

	reply := &machine.EtcdMembers{}
	for _, m := range g.View().Members {
		reply.LegacyMembers = append(reply.LegacyMembers, m.Name)
		reply.Members = append(reply.Members, &machine.EtcdMember{
			Id: m.ID, Hostname: m.Name, IsLearner: m.Learner,
			PeerUrls:   []string{"https://" + nodenet.HostPort(m.Addr, 2380)},
			ClientUrls: []string{"https://" + nodenet.HostPort(m.Addr, 2379)},
		})
	}

	return &machine.EtcdMemberListResponse{Messages: []*machine.EtcdMembers{reply}}, nil
}

// EtcdRemoveMemberByID removes a member, running or not.
func (s *machineServer) EtcdRemoveMemberByID(
	ctx context.Context, in *machine.EtcdRemoveMemberByIDRequest,
) (*machine.EtcdRemoveMemberByIDResponse, error) {
	g, err := s.etcdWithLeader(ctx, "etcd remove member", false)
	if err != nil {
		return nil, err
	}

	end := s.node.VM.Trace.Begin("etcd.remove", s.node.Object(), map[string]string{"member": etcd.FormatID(in.GetMemberId())})
	err = g.Remove(in.GetMemberId())
	end(err)
	switch {
	case errors.Is(err, etcd.ErrMemberNotFound):
		return nil, status.Error(codes.NotFound, fmt.Sprintf("failed to remove member %d: %s", in.GetMemberId(), err))
	case err != nil:
		return nil, fmt.Errorf("failed to remove member: failed to remove member %d: %w", in.GetMemberId(), err)
	}

	return &machine.EtcdRemoveMemberByIDResponse{Messages: []*machine.EtcdRemoveMemberByID{{}}}, nil
}

// EtcdLeaveCluster takes this node out of etcd and removes its data.
func (s *machineServer) EtcdLeaveCluster(
	ctx context.Context, _ *machine.EtcdLeaveClusterRequest,
) (*machine.EtcdLeaveClusterResponse, error) {
	if _, err := s.etcdWithLeader(ctx, "etcd leave", false); err != nil {
		return nil, err
	}
	if err := s.node.LeaveEtcd(ctx); err != nil {
		return nil, fmt.Errorf("failed to leave cluster: %w", err)
	}

	return &machine.EtcdLeaveClusterResponse{Messages: []*machine.EtcdLeaveCluster{{}}}, nil
}

// EtcdForfeitLeadership moves etcd's leadership to another member.
func (s *machineServer) EtcdForfeitLeadership(
	ctx context.Context, _ *machine.EtcdForfeitLeadershipRequest,
) (*machine.EtcdForfeitLeadershipResponse, error) {
	g, err := s.etcdWithLeader(ctx, "etcd forfeit leadership", false)
	if err != nil {
		return nil, err
	}
	_, id := s.node.Group()
	leader, err := g.Forfeit(id)
	if err != nil {
		return nil, fmt.Errorf("failed to forfeit leadership: %w", err)
	}

	return &machine.EtcdForfeitLeadershipResponse{
		Messages: []*machine.EtcdForfeitLeadership{{Member: leader}},
	}, nil
}

// EtcdStatus tells how this node's member is.
func (s *machineServer) EtcdStatus(ctx context.Context, _ *emptypb.Empty) (*machine.EtcdStatusResponse, error) {
	if err := s.controlPlaneOnly("etcd status"); err != nil {
		return nil, err
	}
	g, err := s.etcdClient(ctx, true)
	if err != nil {
		return nil, err
	}

	_, id := s.node.Group()
	v := g.View()
	m := &machine.EtcdMemberStatus{
		MemberId: id, Leader: v.Leader, RaftTerm: v.Term,
		RaftIndex: uint64(v.Revision), RaftAppliedIndex: uint64(v.Revision), // never negative
		ProtocolVersion: etcdVersion, StorageVersion: "3.6.0", DbSize: etcdDBSize, DbSizeInUse: etcdDBSize / 2,
	}
	if own := g.Member(id); own != nil {
		m.IsLearner = own.Learner
	}
	if v.Leader == 0 {
		m.Errors = append(m.Errors, etcd.ErrNoLeader.Error())
	}

	return &machine.EtcdStatusResponse{Messages: []*machine.EtcdStatus{{MemberStatus: m}}}, nil
}

// EtcdAlarmList lists alarms; the lab raises none.
func (s *machineServer) EtcdAlarmList(ctx context.Context, _ *emptypb.Empty) (*machine.EtcdAlarmListResponse, error) {
	if _, err := s.etcdWithLeader(ctx, "etcd alarm list", true); err != nil {
		return nil, err
	}

	return &machine.EtcdAlarmListResponse{Messages: []*machine.EtcdAlarm{{}}}, nil
}

// EtcdDefragment finds nothing to do.
func (s *machineServer) EtcdDefragment(ctx context.Context, _ *emptypb.Empty) (*machine.EtcdDefragmentResponse, error) {
	if _, err := s.etcdWithLeader(ctx, "etcd defragment", true); err != nil {
		return nil, err
	}

	return &machine.EtcdDefragmentResponse{Messages: []*machine.EtcdDefragment{{}}}, nil
}

// EtcdSnapshot streams a copy of the cluster's data.
func (s *machineServer) EtcdSnapshot(
	_ *machine.EtcdSnapshotRequest, out grpc.ServerStreamingServer[common.Data],
) error {
	g, err := s.etcdWithLeader(out.Context(), "etcd snapshot", true)
	if err != nil {
		return err
	}
	api, _ := g.Kube.API()
	source, ok := api.(controlplane.Snapshotter)
	if !ok {
		return status.Error(codes.Unavailable, "failed reading etcd snapshot: the cluster's store is not running")
	}

	end := s.node.VM.Trace.Begin("etcd.snapshot", s.node.Object(), s.node.Attrs())
	content, err := source.Snapshot(out.Context())
	end(err)
	if err != nil {
		return fmt.Errorf("failed reading etcd snapshot: %w", err)
	}
	for len(content) > 0 {
		size := min(len(content), snapshotChunk)
		if err := out.Send(&common.Data{Bytes: content[:size]}); err != nil {
			return err // the caller's own stream
		}
		content = content[size:]
	}

	return nil
}

// EtcdRecover takes a snapshot that the next bootstrap restores.
func (s *machineServer) EtcdRecover(
	in grpc.ClientStreamingServer[common.Data, machine.EtcdRecoverResponse],
) error {
	if err := s.controlPlaneOnly("etcd recover"); err != nil {
		return err
	}

	var content []byte
	for {
		data, err := in.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err // the caller's own stream
		}
		content = append(content, data.GetBytes()...)
	}
	s.node.SetUpload(content)

	return in.SendAndClose(&machine.EtcdRecoverResponse{Messages: []*machine.EtcdRecover{{}}})
}
