// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// attempt is a value that is another after every edit of wanted. What holds it in its input is updated
// by an edit that takes back another one whose run failed: state then has the old value, which is the
// wanted one again, but the nodes may be anywhere between.
func attempt(ctx *pulumi.Context, name string, wanted pulumi.StringInput, opts ...pulumi.ResourceOption) (pulumi.StringOutput, error) {
	// Only a new Stash has a new id, and only a trigger that changes makes a new one.
	opts = append(opts, pulumi.ReplacementTrigger(wanted))
	stash, err := pulumi.NewStash(ctx, name, &pulumi.StashArgs{Input: wanted}, opts...)
	if err != nil {
		return pulumi.StringOutput{}, fmt.Errorf("registering %q: %w", name, err)
	}

	return stash.ID().ToStringOutput(), nil
}
