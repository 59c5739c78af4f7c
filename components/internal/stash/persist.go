// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stash

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// Persisted hold secrets that were generated once and are the same in every later run.
type Persisted struct {
	// Resource has them in the state.
	Resource pulumi.Resource

	values pulumi.StringMapOutput
}

// Value returns one of them, a secret.
func (p *Persisted) Value(key string) pulumi.StringOutput {
	return p.values.MapIndex(pulumi.String(key))
}

// Public returns one of them that need not be secret.
func (p *Persisted) Public(key string) pulumi.StringOutput {
	return pulumi.Unsecret(p.Value(key)).(pulumi.StringOutput)
}

// Persist stores freshly generated secrets when the resource is created; later runs return the stored ones.
func Persist(
	ctx *pulumi.Context, name string, fresh pulumi.StringMap, opts ...pulumi.ResourceOption,
) (*Persisted, error) {
	opts = append(opts[:len(opts):len(opts)], pulumi.IgnoreChanges([]string{"input"}),
		pulumi.AdditionalSecretOutputs([]string{"input", "output"}))
	made, err := pulumi.NewStash(ctx, name, &pulumi.StashArgs{Input: pulumi.ToSecret(fresh)}, opts...)
	if err != nil {
		return nil, fmt.Errorf("registering %q: %w", name, err)
	}
	// Before the resource is there nothing is known: what was generated for a preview is not what will be.
	values := pulumi.All(made.Output, made.ID()).ApplyT(func(v []any) (map[string]string, error) {
		stored, ok := v[0].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("the state of %q holds no values", name)
		}
		values := make(map[string]string, len(stored))
		for key, value := range stored {
			text, ok := value.(string)
			if !ok {
				return nil, fmt.Errorf("the state of %q holds no text for %s", name, key)
			}
			values[key] = text
		}

		return values, nil
	}).(pulumi.StringMapOutput)
	secret := pulumi.ToSecret(values).(pulumi.StringMapOutput)

	return &Persisted{Resource: made, values: secret}, nil
}

// EditToken returns a token that changes whenever wanted changes. Remember it beside wanted: so an edit that
// takes back another one whose run failed is an update too, although the state has the old value, which is
// the wanted one again. The nodes may be anywhere between the two.
func EditToken(ctx *pulumi.Context, name string, wanted pulumi.StringInput, opts ...pulumi.ResourceOption) (pulumi.StringOutput, error) {
	// Only a new Stash has a new id, and only a trigger that changes makes a new one.
	opts = append(opts[:len(opts):len(opts)], pulumi.ReplacementTrigger(wanted), pulumi.HideDiffs([]string{"input"}))
	made, err := pulumi.NewStash(ctx, name, &pulumi.StashArgs{Input: wanted}, opts...)
	if err != nil {
		return pulumi.StringOutput{}, fmt.Errorf("registering %q: %w", name, err)
	}

	return made.ID().ToStringOutput(), nil
}
