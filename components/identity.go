// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// identityType is where the hook of a stack's identity gets its name from.
const identityType = "talos-proxmox:components:Identity"

// KeepIdentity remembers the name of the stack's cluster under a name that no setting changes, and
// refuses another, in the preview already: every resource is named after the cluster, so that a new name
// would replace all of its machines. Everything else must depend on the result. Call it once in a
// program.
func KeepIdentity(ctx *pulumi.Context, cluster string) (pulumi.Resource, error) {
	refuse, err := registerPlanHook(ctx, identityType, "stack", "rename", refuseRename)
	if err != nil {
		return nil, err
	}
	stash, err := pulumi.NewStash(ctx, "identity", &pulumi.StashArgs{Input: pulumi.StringMap{"cluster": pulumi.String(cluster)}},
		pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeUpdate: []*pulumi.ResourceHook{refuse}}))
	if err != nil {
		return nil, fmt.Errorf("registering the stack's identity: %w", err)
	}

	return stash, nil
}

// refuseRename refuses another name.
func refuseRename(args *pulumi.ResourceHookArgs) error {
	was, now := stashedText(args.OldInputs, "cluster"), stashedText(args.NewInputs, "cluster")
	if was == "" || now == "" || was == now {
		return nil
	}

	return fmt.Errorf("cluster.name: was %s, is now %s: every machine would be made anew under the new name; "+
		"write %s again, or make a stack of its own for the new cluster", was, now, was)
}
