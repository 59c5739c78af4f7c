// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// registerHook registers a hook of a component. Names of hooks are global to a program, and the
// engine drops resources bound to a name that was refused: so the name holds the component's type and
// name, and each is registered once.
func registerHook(
	ctx *pulumi.Context, component, name, what string, run pulumi.ResourceHookFunction,
) (*pulumi.ResourceHook, error) {
	return registerHookWith(ctx, hookID(component, name, what), run, nil)
}

// registerPlanHook registers a hook that runs at preview too.
func registerPlanHook(
	ctx *pulumi.Context, component, name, what string, run pulumi.ResourceHookFunction,
) (*pulumi.ResourceHook, error) {
	return registerHookWith(ctx, hookID(component, name, what), run, &pulumi.ResourceHookOptions{OnDryRun: true})
}

func registerHookWith(
	ctx *pulumi.Context, id string, run pulumi.ResourceHookFunction, opts *pulumi.ResourceHookOptions,
) (*pulumi.ResourceHook, error) {
	hook, err := ctx.RegisterResourceHook(id, run, opts)
	if err != nil {
		return nil, fmt.Errorf("registering hook %q: %w", id, err)
	}

	return hook, nil
}

func hookID(component, name, what string) string { return component + "::" + name + "::" + what }
