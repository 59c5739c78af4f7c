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
	id := hookID(component, name, what)
	hook, err := ctx.RegisterResourceHook(id, run, nil)
	if err != nil {
		return nil, fmt.Errorf("registering hook %q: %w", id, err)
	}

	return hook, nil
}

func hookID(component, name, what string) string { return component + "::" + name + "::" + what }
