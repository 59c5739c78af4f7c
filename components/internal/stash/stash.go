// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package stash remembers values between runs, in Pulumi's Stash resources, and runs code when they change.
package stash

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
)

// On says what runs when a remembered value changes. Each function looks at the world before it acts: what
// it fails in is repeated by the next run, since the state keeps the value that it had.
type On[T any] struct {
	// Create runs at up, before the value is remembered for the first time.
	Create func(s hook.Step, value T) error
	// Plan runs in previews and at up, before Update, and refuses the change or says what it means.
	Plan func(s hook.Step, was, now T) error
	// Update runs at up, before the new value is remembered in place of the old one.
	Update func(s hook.Step, was, now T) error
}

// Remember registers a value of plain settings under a name that is unique in the program.
func Remember[T any](
	ctx *pulumi.Context, name string, value T, on On[T], opts ...pulumi.ResourceOption,
) (*pulumi.Stash, error) {
	plain, err := plainValue(value)
	if err != nil {
		return nil, fmt.Errorf("remembering %q: %w", name, err)
	}

	return remember(ctx, name, pulumi.ToOutput(plain), on, opts...)
}

// RememberInputs remembers, as [Remember] does, a value parts of which become known during the run: an input with the shape
// that T has as JSON.
func RememberInputs[T any](
	ctx *pulumi.Context, name string, input pulumi.Input, on On[T], opts ...pulumi.ResourceOption,
) (*pulumi.Stash, error) {
	return remember(ctx, name, input, on, opts...)
}

func remember[T any](
	ctx *pulumi.Context, name string, input pulumi.Input, on On[T], opts ...pulumi.ResourceOption,
) (*pulumi.Stash, error) {
	binding, err := bind(ctx, name, on)
	if err != nil {
		return nil, err
	}
	opts = append(opts[:len(opts):len(opts)], pulumi.ResourceHooks(binding))
	made, err := pulumi.NewStash(ctx, name, &pulumi.StashArgs{Input: input}, opts...)
	if err != nil {
		return nil, fmt.Errorf("registering %q: %w", name, err)
	}

	return made, nil
}

// Outcome holds the value that the state has after the step of a Stash. It is read once, however many ask for it.
type Outcome[T any] struct {
	value pulumi.Output
}

// OutcomeOf returns the value that the state has after the step of made. It differs from the wanted one where the
// engine was told to leave the step out: then none of its hooks ran.
func OutcomeOf[T any](made *pulumi.Stash) Outcome[T] {
	return Outcome[T]{value: made.Input.ApplyT(func(input any) (*T, error) {
		var current T
		raw, err := json.Marshal(input)
		if err == nil {
			err = json.Unmarshal(raw, &current)
		}
		if err != nil {
			return nil, fmt.Errorf("reading what the state remembers: %w", err)
		}

		return &current, nil
	})}
}

// After returns text once the value passes check; where it does not, whatever needs the text fails, and with it the
// program, so that the engine deletes nothing. check must not change the value.
func (o Outcome[T]) After(text string, check func(current T) error) pulumi.StringOutput {
	return o.value.ApplyT(func(v any) (string, error) {
		current, ok := v.(*T)
		if !ok {
			return "", errors.New("reading what the state remembers: it is missing")
		}
		if err := check(*current); err != nil {
			return "", fmt.Errorf("%w\n  this run leaves out a step that this edit needs (--target, --exclude): "+
				"run `pulumi up` without such flags", err)
		}

		return text, nil
	}).(pulumi.StringOutput)
}

// bind registers the hooks of a remembered value.
func bind[T any](ctx *pulumi.Context, name string, on On[T]) (*pulumi.ResourceHookBinding, error) {
	binding := &pulumi.ResourceHookBinding{}
	id := func(what string) string { return hook.ID("pulumi:index:Stash", name, what) }
	if on.Create != nil {
		h, err := hook.Register(ctx, id("create"), func(step hook.Step, args *pulumi.ResourceHookArgs) error {
			now, _, err := Value[T](args.NewInputs)
			if err != nil {
				return err
			}

			return on.Create(step, now)
		})
		if err != nil {
			return nil, err
		}
		binding.BeforeCreate = append(binding.BeforeCreate, h)
	}
	changed := func(run func(hook.Step, T, T) error) hook.Function {
		return func(step hook.Step, args *pulumi.ResourceHookArgs) error {
			was, _, err := Value[T](args.OldInputs)
			if err != nil {
				return err
			}
			now, known, err := Value[T](args.NewInputs)
			if err != nil || !known {
				return err // a preview does not know everything; up does
			}

			return run(step, was, now)
		}
	}
	if on.Plan != nil {
		h, err := hook.RegisterPlan(ctx, id("plan"), changed(on.Plan))
		if err != nil {
			return nil, err
		}
		binding.BeforeUpdate = append(binding.BeforeUpdate, h)
	}
	if on.Update != nil {
		h, err := hook.Register(ctx, id("update"), changed(on.Update))
		if err != nil {
			return nil, err
		}
		binding.BeforeUpdate = append(binding.BeforeUpdate, h)
	}

	return binding, nil
}

// Value returns the value in a Stash's inputs, and reports whether it is known. What is missing or unknown in
// it has its type's zero value.
func Value[T any](inputs resource.PropertyMap) (value T, known bool, err error) {
	input := inputs["input"]
	if input = withoutMarks(input); input.IsNull() {
		return value, false, nil
	}
	text, err := json.Marshal(input.Mappable())
	if err == nil {
		err = json.Unmarshal(text, &value)
	}
	if err != nil {
		return value, false, fmt.Errorf("reading what the state remembers: %w", err)
	}

	return value, true, nil
}

// withoutMarks returns a value without marks of secrets, and null for what is not known.
func withoutMarks(v resource.PropertyValue) resource.PropertyValue {
	switch {
	case v.IsSecret():
		return withoutMarks(v.SecretValue().Element)
	case v.IsOutput():
		if !v.OutputValue().Known {
			return resource.NewNullProperty()
		}

		return withoutMarks(v.OutputValue().Element)
	case v.IsComputed():
		return resource.NewNullProperty()
	case v.IsArray():
		plain := make([]resource.PropertyValue, 0, len(v.ArrayValue()))
		for _, element := range v.ArrayValue() {
			plain = append(plain, withoutMarks(element))
		}

		return resource.NewProperty(plain)
	case v.IsObject():
		plain := resource.PropertyMap{}
		for key, element := range v.ObjectValue() {
			plain[key] = withoutMarks(element)
		}

		return resource.NewProperty(plain)
	default:
		return v
	}
}

// plainValue returns a value as JSON has it.
func plainValue(v any) (any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var plain any
	err = json.Unmarshal(text, &plain)

	return plain, err
}

// Fingerprint returns a short text that changes whenever one of the values does. It may be shown: of secrets
// that somebody could guess, hash a keyed digest instead.
func Fingerprint(values ...any) (string, error) {
	sum := sha256.New()
	for _, v := range values {
		text, err := json.Marshal(v)
		if err != nil {
			return "", fmt.Errorf("reading what is to be compared: %w", err)
		}
		sum.Write(append(text, '\n'))
	}

	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}
