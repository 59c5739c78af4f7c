// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// guardApply are hooks for a node's configuration: one that makes the node reboot waits for its turn at
// the gate, since the provider applies to all nodes at the same time. The node itself says, at up,
// whether it would. A new node joins without a turn; what an earlier life of it left behind goes first.
func (c *TalosCluster) guardApply(ctx *pulumi.Context, name string, m cluster.Member) (*pulumi.ResourceHookBinding, error) {
	var turn rollout.Apply
	enter, err := registerHook(ctx, TalosClusterType, name, "apply/"+m.Name, func(args *pulumi.ResourceHookArgs) error {
		look, err := c.secrets.look(ctx, args.URN)
		if err != nil {
			return err
		}

		return turn.Before(ctx.Context(), c.secrets.gate, look, m, configurationIn(args.NewInputs))
	})
	if err != nil {
		return nil, err
	}
	leave, err := registerHook(ctx, TalosClusterType, name, "applied/"+m.Name, func(args *pulumi.ResourceHookArgs) error {
		look, err := c.secrets.look(ctx, args.URN)
		if err != nil {
			return err
		}

		return turn.After(ctx.Context(), c.secrets.gate, look, m)
	})
	if err != nil {
		return nil, err
	}
	fail, err := c.secrets.failHook(ctx, hookID(TalosClusterType, name, "apply-failed/"+m.Name), m)
	if err != nil {
		return nil, err
	}

	heal, err := registerHook(ctx, TalosClusterType, name, "heal/"+m.Name, func(args *pulumi.ResourceHookArgs) error {
		if c.fresh.Load() {
			return nil
		}
		look, err := c.secrets.look(ctx, args.URN)
		if err != nil {
			return err
		}

		return rollout.Heal(ctx.Context(), look, m)
	})
	if err != nil {
		return nil, err
	}

	hooks := &pulumi.ResourceHookBinding{
		BeforeCreate: []*pulumi.ResourceHook{heal},
		BeforeUpdate: []*pulumi.ResourceHook{enter}, AfterUpdate: []*pulumi.ResourceHook{leave},
		OnError: []*pulumi.ErrorHook{fail},
	}
	if spec.Or(c.config.Cluster.Adopted, false) {
		// The nodes of a cluster that was made elsewhere run already.
		hooks.BeforeCreate, hooks.AfterCreate = []*pulumi.ResourceHook{heal, enter}, hooks.AfterUpdate
	}

	return hooks, nil
}

// failHook closes the gate when a step fails whose node holds a turn, and says what to look at when the
// step was a configuration that nobody was there to take.
func (s *TalosSecrets) failHook(ctx *pulumi.Context, id string, m cluster.Member) (*pulumi.ErrorHook, error) {
	fail, err := ctx.RegisterErrorHook(id, func(args *pulumi.ErrorHookArgs) (bool, error) {
		sayWhereToLook(ctx, args, m)
		s.gate.Fail(m, errors.New(strings.Join(args.Errors, "; ")))

		return false, nil // another try would not do better
	})
	if err != nil {
		return nil, fmt.Errorf("registering hook %q: %w", id, err)
	}

	return fail, nil
}

// configurationIn is the machine configuration among the inputs of its application.
func configurationIn(inputs resource.PropertyMap) []byte {
	value := inputs["machineConfigurationInput"]
	for value.IsSecret() || value.IsOutput() {
		if value.IsSecret() {
			value = value.SecretValue().Element
		} else {
			value = value.OutputValue().Element
		}
	}
	if !value.IsString() {
		return nil
	}

	return []byte(value.StringValue())
}
