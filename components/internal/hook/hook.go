// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package hook registers Pulumi resource hooks and hands them values that become known during a run.
package hook

import (
	"fmt"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// Report writes a line to the resource's log, where people see what was done and what is awaited. What is awaited is
// shown while it lasts; what was done stays.
func (s Step) Report(line string) {
	s.progress.say(line, time.Now())
	if isPassing(line) {
		s.pass(s.progress.placed(line))

		return
	}
	// A log that cannot be written must not end the work that it is about.
	_ = s.Ctx.Log.Info(line, s.at())
}

// ID returns the name of a component's hook. Names of hooks are global to a program, and the engine drops
// resources bound to a name that was refused: so the name holds the component's type and name.
func ID(component, name, what string) string { return component + "::" + name + "::" + what }

// Function holds what a hook does.
type Function func(step Step, args *pulumi.ResourceHookArgs) error

// Register registers a hook that runs at up. Register each name once.
func Register(ctx *pulumi.Context, id string, run Function) (*pulumi.ResourceHook, error) {
	return register(ctx, id, run, nil)
}

// RegisterPlan registers a hook that runs in previews too.
func RegisterPlan(ctx *pulumi.Context, id string, run Function) (*pulumi.ResourceHook, error) {
	return register(ctx, id, run, &pulumi.ResourceHookOptions{OnDryRun: true})
}

func register(
	ctx *pulumi.Context, id string, run Function, opts *pulumi.ResourceHookOptions,
) (*pulumi.ResourceHook, error) {
	h, err := ctx.RegisterResourceHook(id, func(args *pulumi.ResourceHookArgs) error {
		step, end := begin(ctx, args.URN, heartbeat)
		defer end()

		return run(step, args)
	}, opts)
	if err != nil {
		return nil, fmt.Errorf("registering hook %q: %w", id, err)
	}

	return h, nil
}
