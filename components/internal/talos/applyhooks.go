// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/health"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
)

// applyHooks returns hooks for a node's configuration. One that makes the node reboot waits for its turn at
// the gate, since the provider applies to all nodes at the same time; the node itself says, at up, whether it
// would. A new node joins without a turn; what an earlier life of it left in etcd and Kubernetes goes first.
func applyHooks(s *Session, m cluster.Member) (*pulumi.ResourceHookBinding, error) {
	var turn rollout.Apply
	var began time.Time
	ctx := s.Ctx.Context()
	enter, err := s.nodeHook("apply", m, func(step hook.Step, args *pulumi.ResourceHookArgs) error {
		began = time.Now()
		d, err := s.disruption(step)
		if err != nil {
			return err
		}

		return turn.Before(ctx, d, m, configurationIn(args.NewInputs))
	})
	if err != nil {
		return nil, err
	}
	leave, err := s.nodeHook("applied", m, func(step hook.Step, _ *pulumi.ResourceHookArgs) error {
		d, err := s.disruption(step)
		if err != nil {
			return err
		}

		if err := turn.After(ctx, d, m); err != nil {
			return err
		}
		s.work.Did("configurations", m.Name, began, time.Now())

		return nil
	})
	if err != nil {
		return nil, err
	}
	fail, err := failHook(s, "apply-failed/"+m.Name, m, &turn.Reboot)
	if err != nil {
		return nil, err
	}
	heal, err := healHook(s, m)
	if err != nil {
		return nil, err
	}

	hooks := &pulumi.ResourceHookBinding{
		BeforeCreate: []*pulumi.ResourceHook{heal},
		BeforeUpdate: []*pulumi.ResourceHook{enter}, AfterUpdate: []*pulumi.ResourceHook{leave},
		OnError: []*pulumi.ErrorHook{fail},
	}
	if s.adopted() {
		// The nodes of a cluster that was made elsewhere run already.
		hooks.BeforeCreate, hooks.AfterCreate = []*pulumi.ResourceHook{heal, enter}, hooks.AfterUpdate
	}

	return hooks, nil
}

// healHook returns the hook that removes what an earlier life of a node left in etcd and Kubernetes.
func healHook(s *Session, m cluster.Member) (*pulumi.ResourceHook, error) {
	return s.nodeHook("heal", m, func(step hook.Step, _ *pulumi.ResourceHookArgs) error {
		if s.isNew.Load() {
			return nil
		}
		checker, err := s.checker(step)
		if err != nil {
			return err
		}

		return rollout.Heal(s.Ctx.Context(), checker, m)
	})
}

// configurationIn returns the machine configuration among the inputs of its application.
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

// configurationApplyType is the provider's resource that brings a node its configuration.
const configurationApplyType = "talos:machine/configurationApply:ConfigurationApply"

// sayWhereToLook reports, when a configuration could not be brought to its node, what to look at: the
// provider's error has an address and no name, and knows nothing of the VM.
func sayWhereToLook(step hook.Step, errs []string, m cluster.Member) {
	if !strings.Contains(string(step.URN), configurationApplyType+"::") {
		return
	}
	if text := whereToLook(m, errs); text != "" {
		step.Error(text)
	}
}

// whereToLook returns what to look at when a node did not take its configuration because it did not answer;
// empty when it did answer and refused it.
func whereToLook(m cluster.Member, errs []string) string {
	gone := slices.ContainsFunc(errs, func(e string) bool {
		return strings.Contains(e, "code = Unavailable") || strings.Contains(e, "code = DeadlineExceeded") ||
			strings.Contains(e, "context deadline exceeded")
	})
	if !gone {
		return ""
	}

	return fmt.Sprintf("node %s did not take its configuration\n  look at: %s", m, health.UnreachableHint(m))
}

// failHook closes the gate when a step fails whose node holds a turn, and says what to look at when the step
// was a configuration that nobody was there to take.
func failHook(s *Session, what string, m cluster.Member, reboot *rollout.Reboot) (*pulumi.ErrorHook, error) {
	id := hook.ID("talos", s.Name, what)
	fail, err := s.Ctx.RegisterErrorHook(id, func(args *pulumi.ErrorHookArgs) (bool, error) {
		step := hook.Step{Ctx: s.Ctx, URN: args.URN}
		sayWhereToLook(step, args.Errors, m)
		reason := errors.New(strings.Join(args.Errors, "; "))
		if s.Gate.Inside(m) {
			if d, err := s.disruption(step); err == nil {
				reboot.Fail(s.Ctx.Context(), d, m, reason)
			}
			s.Gate.Fail(m, reason)
		}

		return false, nil // another try would not do better
	})
	if err != nil {
		return nil, fmt.Errorf("registering hook %q: %w", id, err)
	}

	return fail, nil
}
