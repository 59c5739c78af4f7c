// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
)

// Guard returns hooks for the machine of a node: an edit that reboots it waits for its turn, since the
// provider edits machines in parallel, and goes ahead only while the cluster can spare the node; the
// next one gets its turn when the node is back. Machines with these hooks must depend on the secrets.
// Call it once for each node.
func (s *TalosSecrets) Guard(ctx *pulumi.Context, node string) (*pulumi.ResourceHookBinding, error) {
	at := slices.IndexFunc(s.access.cluster.Members, func(m cluster.Member) bool { return m.Name == node })
	if at < 0 {
		return nil, fmt.Errorf("the cluster has no node %q", node)
	}
	m, name := s.access.cluster.Members[at], s.name
	enter, err := registerHook(ctx, TalosSecretsType, name, "enter/"+node, s.enter(ctx, m))
	if err != nil {
		return nil, err
	}
	leave, err := registerHook(ctx, TalosSecretsType, name, "leave/"+node, s.leave(ctx, m))
	if err != nil {
		return nil, err
	}
	fail, err := s.failHook(ctx, hookID(TalosSecretsType, name, "fail/"+node), m)
	if err != nil {
		return nil, err
	}

	return &pulumi.ResourceHookBinding{
		BeforeUpdate: []*pulumi.ResourceHook{enter}, AfterUpdate: []*pulumi.ResourceHook{leave},
		OnError: []*pulumi.ErrorHook{fail},
	}, nil
}

func (s *TalosSecrets) enter(ctx *pulumi.Context, m cluster.Member) pulumi.ResourceHookFunction {
	return func(args *pulumi.ResourceHookArgs) error {
		if !VMEditReboots(args.OldInputs, args.NewInputs) {
			return nil
		}
		look, err := s.look(ctx, args.URN)
		if err != nil {
			return err
		}
		if !look.Lives(ctx.Context()) {
			return nil
		}
		waiting, cancel := context.WithTimeout(ctx.Context(), time.Duration(len(look.Cluster.Members))*2*look.Poll.Timeout)
		defer cancel()

		return s.gate.Enter(waiting, m, look.Before(m)) //nolint:wrapcheck // names the node
	}
}

func (s *TalosSecrets) leave(ctx *pulumi.Context, m cluster.Member) pulumi.ResourceHookFunction {
	return func(args *pulumi.ResourceHookArgs) error {
		look, err := s.look(ctx, args.URN)
		if err != nil {
			return err
		}

		return s.gate.Leave(ctx.Context(), m, look.After()) //nolint:wrapcheck // names the node
	}
}

func (s *TalosSecrets) look(ctx *pulumi.Context, urn pulumi.URN) (rollout.HealthChecker, error) {
	remote, err := s.access.openLiving(ctx.Context(), reportTo(ctx, urn))
	if err != nil {
		return rollout.HealthChecker{}, err
	}

	// Machines come before the members that leave, and beside those that join.
	wanted := s.access.cluster
	wanted.Leaving, wanted.Joining = true, true

	return rollout.HealthChecker{
		Access: remote, Cluster: wanted, Report: reportTo(ctx, urn),
		Poll: cluster.DefaultPollOptions(duration(s.config.Lifecycle.ReadyTimeout, 15*time.Minute)),
	}, nil
}
