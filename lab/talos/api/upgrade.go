// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package api

import (
	"context"
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/node"
)

// lifecycleServer installs Talos since 1.13: it runs the installer, sends what that prints and the code
// that it ends with, and leaves the reboot, the drain and any look at etcd to its caller.
type lifecycleServer struct {
	machine.UnimplementedLifecycleServiceServer
	node *node.Node
	// power ends with the node's power cycle: the installer outlives its caller.
	power context.Context // that of the API server
}

// Install refuses: whoever may call it calls a node that has Talos already.
func (s *lifecycleServer) Install(
	*machine.LifecycleServiceInstallRequest, grpc.ServerStreamingServer[machine.LifecycleServiceInstallResponse],
) error {
	return status.Error(codes.AlreadyExists, "machine is already installed")
}

// Upgrade writes another Talos beside the one that runs, and has it boot next.
func (s *lifecycleServer) Upgrade(
	in *machine.LifecycleServiceUpgradeRequest, out grpc.ServerStreamingServer[machine.LifecycleServiceUpgradeResponse],
) error {
	n := s.node
	if !n.Installing.TryLock() {
		return status.Error(codes.FailedPrecondition, "another installation/upgrade is already in progress")
	}
	defer n.Installing.Unlock()
	name := in.GetSource().GetImageName()
	switch {
	case n.Disk == nil:
		return status.Error(codes.FailedPrecondition, "machine is not installed")
	case name == "":
		return status.Error(codes.InvalidArgument, "installer image name is required")
	case !n.HasImage(name):
		return status.Errorf(codes.Internal,
			"upgrade failed: installer image %q not found in containerd store: image %q: not found", name, name)
	}
	img, err := n.VM.PullImage(s.power, name)
	if err != nil {
		return status.Errorf(codes.Internal, "upgrade failed: %s", err)
	}

	return s.install(n.OnDisk(img), out)
}

// install runs the installer. That a caller is gone keeps it from nothing.
func (s *lifecycleServer) install(
	next guest.Image, out grpc.ServerStreamingServer[machine.LifecycleServiceUpgradeResponse],
) error {
	n := s.node
	say := func(line string) {
		_ = out.Send(&machine.LifecycleServiceUpgradeResponse{Progress: &machine.LifecycleServiceInstallProgress{
			Response: &machine.LifecycleServiceInstallProgress_Message{Message: line + "\n"},
		}})
	}
	attrs := n.Attrs()
	attrs["to"], attrs["schematic"], attrs["service"] = next.Talos, next.Schematic, "LifecycleService"
	end := n.VM.Trace.Begin("talos.upgrade", n.Object(), attrs)
	say("running Talos installer " + next.Talos)
	err := n.Preflight(next)
	if err == nil {
		say("all preflight checks successful")
		if err = n.VM.Clock.Sleep(s.power, node.UpgradeTime); err == nil {
			err = n.SwitchTo(next)
		}
	}
	end(err)
	if s.power.Err() != nil {
		return status.FromContextError(s.power.Err()).Err()
	}
	code := int32(0)
	if err != nil {
		code = 1
		say("Error: " + err.Error())
	} else {
		say(fmt.Sprintf("installation of %s complete", next.Talos))
	}

	return out.Send(&machine.LifecycleServiceUpgradeResponse{ // the caller's own stream
		Progress: &machine.LifecycleServiceInstallProgress{
			Response: &machine.LifecycleServiceInstallProgress_ExitCode{ExitCode: code},
		},
	})
}
