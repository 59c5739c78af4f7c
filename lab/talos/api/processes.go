// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package api

import (
	"context"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/talos-proxmox/talos-proxmox/lab/talos/controlplane"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/events"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"
)

// Containers lists what would run in containers: services, and the control plane's own pods.
func (s *machineServer) Containers(_ context.Context, in *machine.ContainersRequest) (*machine.ContainersResponse, error) {
	reply := &machine.Container{}
	add := func(id, image, pod string) {
		reply.Containers = append(reply.Containers, &machine.ContainerInfo{
			Namespace: in.GetNamespace(), Id: id, Name: id, Image: image, PodId: pod, Pid: uint32(1000 + len(reply.Containers)), Status: "RUNNING",
		})
	}
	if in.GetDriver() == common.ContainerDriver_CRI {
		if machineconfig.IsControlPlane(s.node.Config()) {
			for _, p := range controlplane.StaticPods(s.node.Config()) {
				add("kube-system/"+p.Name+"-"+s.node.Hostname()+":"+p.Name, p.Image, "kube-system/"+p.Name+"-"+s.node.Hostname())
			}
		}

		return &machine.ContainersResponse{Messages: []*machine.Container{reply}}, nil
	}
	for _, svc := range s.runningServices("apid", "etcd", "kubelet", "trustd") {
		add(svc, "", "")
	}

	return &machine.ContainersResponse{Messages: []*machine.Container{reply}}, nil
}

// runningServices returns which of some services run.
func (s *machineServer) runningServices(of ...string) []string {
	return slices.DeleteFunc(of, func(id string) bool {
		svc := s.node.Services.Get(id)

		return svc == nil || svc.GetState() != events.StateRunning
	})
}

// Stats tells what containers use, which is nothing.
func (s *machineServer) Stats(ctx context.Context, in *machine.StatsRequest) (*machine.StatsResponse, error) {
	all, err := s.Containers(ctx, &machine.ContainersRequest{Namespace: in.GetNamespace(), Driver: in.GetDriver()})
	if err != nil {
		return nil, err
	}
	reply := &machine.Stats{}
	for _, c := range all.GetMessages()[0].GetContainers() {
		reply.Stats = append(reply.Stats, &machine.Stat{Namespace: c.GetNamespace(), Id: c.GetId(), PodId: c.GetPodId(), Name: c.GetName()})
	}

	return &machine.StatsResponse{Messages: []*machine.Stats{reply}}, nil
}

// Processes lists the node's services as processes.
func (s *machineServer) Processes(context.Context, *emptypb.Empty) (*machine.ProcessesResponse, error) {
	reply := &machine.Process{}
	for i, svc := range s.runningServices("machined", "containerd", "cri", "apid", "trustd", "etcd", "kubelet", "udevd") {
		reply.Processes = append(reply.Processes, &machine.ProcessInfo{
			Pid: int32(i + 1), Ppid: int32(min(i, 1)), State: "S", Threads: 1, Command: svc, Executable: "/" + svc, Args: svc,
		})
	}

	return &machine.ProcessesResponse{Messages: []*machine.Process{reply}}, nil
}

// Netstat lists the ports on which the node's services listen.
func (s *machineServer) Netstat(context.Context, *machine.NetstatRequest) (*machine.NetstatResponse, error) {
	reply := &machine.Netstat{}
	for _, svc := range s.runningServices("apid", "trustd", "etcd", "kubelet") {
		reply.Connectrecord = append(reply.Connectrecord, &machine.ConnectRecord{
			L4Proto: "tcp", Localip: "0.0.0.0", Remoteip: "0.0.0.0", State: machine.ConnectRecord_LISTEN,
			Process:   &machine.ConnectRecord_Process{Name: svc},
			Localport: map[string]uint32{"apid": 50000, "trustd": 50001, "etcd": 2379, "kubelet": 10250}[svc],
		})
	}

	return &machine.NetstatResponse{Messages: []*machine.Netstat{reply}}, nil
}
