// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package drift

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/state"
	"github.com/talos-proxmox/talos-proxmox/internal/proxmox"
)

// machineDrift returns the disks that somebody added to VMs, which the provider shows after a refresh and takes out of no VM.
// unasked says why Proxmox VE was not asked; it is empty where it was.
func machineDrift(ctx context.Context, c state.Cluster) (found []string, unasked string) {
	access := c.Proxmox.OrEnvironment()
	access.Insecure = access.Insecure || proxmox.InsecureByEnvironment()
	if len(c.Machines) == 0 {
		return nil, "the state has no record of them"
	}
	if !access.Complete() {
		return nil, "neither the state nor the environment has an endpoint and credentials of Proxmox VE"
	}
	client, err := proxmox.New(access)
	if err != nil {
		return []string{fmt.Sprintf("VMs: %v", err)}, ""
	}
	for _, name := range slices.Sorted(maps.Keys(c.Machines)) {
		m := c.Machines[name]
		calling, cancel := context.WithTimeout(ctx, callTimeout)
		is, err := client.Inspect(calling, m.ID)
		cancel()
		if err != nil {
			return append(found, fmt.Sprintf("VMs: Proxmox VE does not say what they have: %v", err)), ""
		}
		if is == nil {
			found = append(found, fmt.Sprintf("%s: its VM %d is not there: run `pulumi up --refresh`", name, m.ID))

			continue
		}
		if added := is.AddedDisks(m.Disks); len(added) > 0 {
			found = append(found, fmt.Sprintf("%s: its VM %d on host %s has the disk %s, which the stack does not have: take it out there (%s, "+
				"which keeps its data as an unused disk), or write it under nodes.%s.disks and run `pulumi up --refresh`",
				name, m.ID, is.Host, strings.Join(added, ", "), proxmox.TakeOut(m.ID, added), name))
		}
	}

	return found, ""
}
