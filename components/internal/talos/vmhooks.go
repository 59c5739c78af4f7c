// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/components/internal/vmargs"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// VMHooks returns hooks for a node's VM: an edit that reboots or moves it waits for its turn at the gate, since the
// provider edits VMs in parallel, and goes ahead only while the cluster can spare the node, which is drained
// before; the next one gets its turn when the node is back. The VM must depend on the secrets. Call it once for
// each node.
func VMHooks(s *Session, node string) (*pulumi.ResourceHookBinding, error) {
	at := slices.IndexFunc(s.Cluster.Members, func(m cluster.Member) bool { return m.Name == node })
	if at < 0 {
		return nil, fmt.Errorf("the cluster has no node %q", node)
	}
	m := s.Cluster.Members[at]
	var reboot rollout.Reboot
	var began time.Time
	moves := false // the hooks of one VM never run at the same time
	enter, err := s.nodeHook("vm-enter", m, func(step hook.Step, args *pulumi.ResourceHookArgs) error {
		began = time.Now()
		// A VM that is off is not taken down by an edit, which starts it.
		reboots := vmargs.EditReboots(args.OldInputs, args.NewInputs) && !vmargs.WasOff(args.OldOutputs)
		moves = !reboots && !vmargs.WasOff(args.OldOutputs) && vmargs.EditMoves(args.OldInputs, args.NewInputs)
		switch {
		case reboots:
			return enterGate(s, step, m, &reboot)
		case moves:
			return enterToMove(s, step, m)
		default:
			return nil
		}
	})
	if err != nil {
		return nil, err
	}
	leave, err := s.nodeHook("vm-leave", m, func(step hook.Step, args *pulumi.ResourceHookArgs) error {
		switch {
		case vmargs.WasOff(args.OldOutputs) && !s.Gate.Inside(m):
			return awaitStarted(s, step, m)
		case moves:
			return leaveMoved(s, step, m)
		default:
			return leaveGate(s, step, m, &reboot, began)
		}
	})
	if err != nil {
		return nil, err
	}
	fail, err := failHook(s, "vm-failed/"+node, m, &reboot)
	if err != nil {
		return nil, err
	}

	return &pulumi.ResourceHookBinding{
		BeforeUpdate: []*pulumi.ResourceHook{enter}, AfterUpdate: []*pulumi.ResourceHook{leave},
		OnError: []*pulumi.ErrorHook{fail},
	}, nil
}

// enterGate waits for the node's turn, and drains it.
func enterGate(s *Session, step hook.Step, m cluster.Member, reboot *rollout.Reboot) error {
	d, err := s.disruption(step)
	if err != nil {
		return err
	}
	if serving, err := d.Checker.Serving(s.Ctx.Context()); err != nil || !serving {
		return err
	}

	step.Report("waiting for its turn at the gate")

	return reboot.Enter(s.Ctx.Context(), d, m)
}

// leaveGate waits for the node that the provider rebooted. After a run that failed between an edit and its reboot
// the provider finds nothing to do, and the VM still runs as before: then Proxmox VE is asked for the reboot.
func leaveGate(s *Session, step hook.Step, m cluster.Member, reboot *rollout.Reboot, began time.Time) error {
	if !s.Gate.Inside(m) {
		return nil
	}
	d, err := s.disruption(step)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(s.Config.Nodes, func(n spec.NamedNode) bool { return n.Name == m.Name })

	err = reboot.Leave(s.Ctx.Context(), d, m, func(ctx context.Context) error {
		return s.Proxmox.Reboot(ctx, s.Config.Nodes[at])
	})
	if err == nil {
		s.work.Did("VMs edited with a reboot", m.Name, began, time.Now())
	}

	return err
}

// awaitStarted waits for a node whose VM was off and which this update started: nothing else in the run looks at it.
// The other nodes may be off too and are started beside it, so that only this one is asked for.
func awaitStarted(s *Session, step hook.Step, m cluster.Member) error {
	bootstrapped, err := s.wasBootstrapped(s.Ctx.Context())
	if err != nil || !bootstrapped {
		return err
	}
	checker, err := s.checker(step)
	if err != nil {
		return err
	}
	checker.Cluster.Members = []cluster.Member{m}
	checker.Cluster.SkipKubernetes = true
	if err := checker.Ready(s.Ctx.Context()); err != nil {
		return fmt.Errorf("node %s was started: %w", m, err)
	}

	return nil
}

// enterToMove waits for the turn of a node whose VM moves to another host while it runs: it is not drained, and
// VMs move one at a time.
func enterToMove(s *Session, step hook.Step, m cluster.Member) error {
	checker, err := s.checker(step)
	if err != nil {
		return err
	}
	if serving, err := checker.Serving(s.Ctx.Context()); err != nil || !serving {
		return err
	}
	// Each of the others may take its turn first: to go, and to be well again.
	waiting, cancel := context.WithTimeout(s.Ctx.Context(), time.Duration(len(checker.Cluster.Members))*2*checker.Poll.Timeout)
	defer cancel()

	return s.Gate.Enter(waiting, m, checker.Before(m))
}

// leaveMoved waits until the cluster is well with the node on its new host.
func leaveMoved(s *Session, step hook.Step, m cluster.Member) error {
	checker, err := s.checker(step)
	if err != nil {
		return err
	}

	return s.Gate.Leave(s.Ctx.Context(), m, checker.After())
}
