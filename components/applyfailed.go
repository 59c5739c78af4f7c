// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/health"
)

// configurationApplyType is the provider's resource that brings a node its configuration.
const configurationApplyType = "talos:machine/configurationApply:ConfigurationApply"

// sayWhereToLook tells, when a node's configuration could not be brought to it, what to look at: the
// provider's error has an address and no name, and does not know of the machine.
func sayWhereToLook(ctx *pulumi.Context, args *pulumi.ErrorHookArgs, m cluster.Member) {
	if !strings.Contains(string(args.URN), configurationApplyType+"::") {
		return
	}
	if text := whereToLook(m, args.Errors); text != "" {
		// A log that cannot be written must not hide the failure that it is about.
		_ = ctx.Log.Error(text, &pulumi.LogArgs{Resource: urnResource{urn: args.URN}})
	}
}

// whereToLook says what to look at when a node did not take its configuration because it was not there;
// empty when it was and refused it.
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
