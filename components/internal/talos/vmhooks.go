// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/components/internal/vmargs"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
)

// VMHooks returns hooks for a node's VM: an edit that reboots it waits for its turn at the gate, since the
// provider edits VMs in parallel, and goes ahead only while the cluster can spare the node; the next one gets
// its turn when the node is back. The VM must depend on the secrets. Call it once for each node.
func VMHooks(s *Session, node string) (*pulumi.ResourceHookBinding, error) {
	at := slices.IndexFunc(s.Cluster.Members, func(m cluster.Member) bool { return m.Name == node })
	if at < 0 {
		return nil, fmt.Errorf("the cluster has no node %q", node)
	}
	m := s.Cluster.Members[at]
	enter, err := s.hook("vm-enter/"+node, func(step hook.Step, args *pulumi.ResourceHookArgs) error {
		if !vmargs.EditReboots(args.OldInputs, args.NewInputs) {
			return nil
		}

		return enterGate(s, step, m)
	})
	if err != nil {
		return nil, err
	}
	leave, err := s.hook("vm-leave/"+node, func(step hook.Step, _ *pulumi.ResourceHookArgs) error {
		checker, err := s.checker(step)
		if err != nil {
			return err
		}

		return s.Gate.Leave(s.Ctx.Context(), m, checker.After()) //nolint:wrapcheck // names the node
	})
	if err != nil {
		return nil, err
	}
	fail, err := failHook(s, "vm-failed/"+node, m)
	if err != nil {
		return nil, err
	}

	return &pulumi.ResourceHookBinding{
		BeforeUpdate: []*pulumi.ResourceHook{enter}, AfterUpdate: []*pulumi.ResourceHook{leave},
		OnError: []*pulumi.ErrorHook{fail},
	}, nil
}

// enterGate waits for the node's turn.
func enterGate(s *Session, step hook.Step, m cluster.Member) error {
	checker, err := s.checker(step)
	if err != nil {
		return err
	}
	if !checker.Lives(s.Ctx.Context()) {
		return nil
	}
	// Each of the others may take its turn first: to go down, and to come back.
	waiting, cancel := context.WithTimeout(s.Ctx.Context(), time.Duration(len(checker.Cluster.Members))*2*checker.Poll.Timeout)
	defer cancel()

	step.Report("waiting for its turn at the gate")

	return s.Gate.Enter(waiting, m, checker.Before(m)) //nolint:wrapcheck // names the node
}

// checker returns the checks that are made before a node goes down and when it is back.
func (s *Session) checker(step hook.Step) (rollout.HealthChecker, error) {
	remote, err := s.APIs.openLiving(s.Ctx.Context(), step.Report)
	if err != nil {
		return rollout.HealthChecker{}, err
	}

	// VMs come before the members that leave, and beside those that join.
	cluster := s.Cluster
	cluster.Leaving, cluster.Joining = true, true

	return rollout.HealthChecker{
		Access: remote, Cluster: cluster, Report: step.Report, Poll: pollOptions(s.Config.Lifecycle.ReadyTimeout),
	}, nil
}

// failHook closes the gate when a step fails whose node holds a turn, and says what to look at when the step
// was a configuration that nobody was there to take.
func failHook(s *Session, what string, m cluster.Member) (*pulumi.ErrorHook, error) {
	id := hook.ID("talos", s.Name, what)
	fail, err := s.Ctx.RegisterErrorHook(id, func(args *pulumi.ErrorHookArgs) (bool, error) {
		sayWhereToLook(hook.Step{Ctx: s.Ctx, URN: args.URN}, args.Errors, m)
		s.Gate.Fail(m, errors.New(strings.Join(args.Errors, "; ")))

		return false, nil // another try would not do better
	})
	if err != nil {
		return nil, fmt.Errorf("registering hook %q: %w", id, err)
	}

	return fail, nil
}
