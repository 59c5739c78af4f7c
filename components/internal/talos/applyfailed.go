// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"fmt"
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/health"
)

// configurationApplyType is the provider's resource that brings a node its configuration.
const configurationApplyType = "talos:machine/configurationApply:ConfigurationApply"

// sayWhereToLook reports, when a configuration could not be brought to its node, what to look at: the
// provider's error has an address and no name, and knows nothing of the VM.
func sayWhereToLook(step hook.Step, errs []string, m cluster.Member) {
	if !strings.Contains(string(step.URN), configurationApplyType+"::") {
		return
	}
	if text := whereToLook(m, errs); text != "" {
		step.Error(text)
	}
}

// whereToLook returns what to look at when a node did not take its configuration because it did not answer;
// empty when it did answer and refused it.
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
