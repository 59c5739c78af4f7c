// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/vm"
)

// guard registers what of the VM cannot be edited in place, upstream of the VM. Its hook is the only
// place that sees what was before: it refuses, in the preview already, an edit that would replace
// the VM or lose data.
func (b *nodeBuilder) guard() (*pulumi.Stash, error) {
	node, allowed := b.args.Node.Name, slices.Clone(b.args.allowed())
	// Hooks are global to the program: the name is as unique as the component's.
	hook, err := b.ctx.RegisterResourceHook(ProxmoxNodeType+"::"+b.name+"::guard",
		func(step *pulumi.ResourceHookArgs) error {
			return RefuseVMEdit(node, step.OldInputs, step.NewInputs, allowed)
		}, &pulumi.ResourceHookOptions{OnDryRun: true})
	if err != nil {
		return nil, fmt.Errorf("registering the guard's hook: %w", err)
	}

	created, err := registerHook(b.ctx, ProxmoxNodeType, b.name, "new", b.noteNew)
	if err != nil {
		return nil, err
	}

	now := vm.IdentityOf(b.args.Node, b.args.Image, b.args.Lifecycle.Replace[node])
	input, err := stashInput(now)
	if err != nil {
		return nil, fmt.Errorf("recording the VM's identity: %w", err)
	}
	guard, err := pulumi.NewStash(b.ctx, b.name+"-guard", &pulumi.StashArgs{Input: input}, pulumi.Parent(b.node),
		pulumi.ResourceHooks(&pulumi.ResourceHookBinding{
			BeforeCreate: []*pulumi.ResourceHook{created}, BeforeUpdate: []*pulumi.ResourceHook{hook},
		}))
	if err != nil {
		return nil, fmt.Errorf("registering the guard: %w", err)
	}

	return guard, nil
}

// RefuseVMEdit holds the inputs of a node's guard against what they were, and returns a
// [*spec.InvalidError] that names every edit which would replace the node's VM without permission, or
// lose data. allowed are the fields whose edits may replace it, or "*".
func RefuseVMEdit(node string, was, now resource.PropertyMap, allowed []string) error {
	before, err := stashed(was)
	if err != nil {
		return fmt.Errorf("reading what node %q was: %w", node, err)
	}
	after, err := stashed(now)
	if err != nil {
		return fmt.Errorf("reading what node %q is to be: %w", node, err)
	}
	var l check.List
	vm.Refuse(node, before, after, allowed, &l)

	return l.Err(fmt.Sprintf("node %q: the edit is refused", node))
}

// stashInput is the identity as a value of Pulumi's.
func stashInput(id vm.Identity) (pulumi.Input, error) {
	plain, err := plainValue(id)
	if err != nil {
		return nil, err
	}

	return pulumi.ToOutput(plain), nil
}

// plainValue is a value as JSON knows it.
func plainValue(v any) (map[string]any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var plain map[string]any
	if err := json.Unmarshal(text, &plain); err != nil {
		return nil, err
	}

	return plain, nil
}

// stashed is the identity in the inputs of a Stash.
func stashed(inputs resource.PropertyMap) (vm.Identity, error) {
	var id vm.Identity
	text, err := json.Marshal(inputs["input"].Mappable())
	if err != nil {
		return id, err
	}

	return id, json.Unmarshal(text, &id)
}
