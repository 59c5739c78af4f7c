// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// kept are secret values that were made once and are the same ever after.
type kept struct {
	resource pulumi.Resource
	values   pulumi.StringMapOutput
}

// value is one of them.
func (k *kept) value(key string) pulumi.StringOutput {
	return k.values.MapIndex(pulumi.String(key))
}

// keep stores freshly made secret values in state when the resource is created; on every later run
// what was stored first comes back, and what was made for that run is forgotten.
func keep(
	ctx *pulumi.Context, name string, fresh pulumi.StringMap, opts ...pulumi.ResourceOption,
) (*kept, error) {
	opts = append(opts, pulumi.IgnoreChanges([]string{"input"}),
		pulumi.AdditionalSecretOutputs([]string{"input", "output"}))
	stash, err := pulumi.NewStash(ctx, name, &pulumi.StashArgs{Input: pulumi.ToSecret(fresh)}, opts...)
	if err != nil {
		return nil, fmt.Errorf("registering %q: %w", name, err)
	}
	// Before the resource is there nothing is known: what was made for a preview is not what will be.
	values := pulumi.All(stash.Output, stash.ID()).ApplyT(func(v []any) (map[string]string, error) {
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
	}).(pulumi.StringMapOutput) //nolint:forcetypeassert // the function's type
	secret := pulumi.ToSecret(values).(pulumi.StringMapOutput) //nolint:forcetypeassert // ToSecret keeps the type

	return &kept{resource: stash, values: secret}, nil
}
