// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout

import "github.com/talos-proxmox/talos-proxmox/internal/cluster"

// Order returns, by name, the members that each member's upgrade comes after: control planes one after the other, then
// workers behind the last of them in as many lanes as may be unavailable.
func Order(members []cluster.Member, lanes int) map[string][]cluster.Member {
	after := make(map[string][]cluster.Member, len(members))
	planes := cluster.Cluster{Members: members}.ControlPlanes()
	for i, m := range planes {
		if i > 0 {
			after[m.Name] = planes[i-1 : i]
		}
	}
	var workers []cluster.Member
	for _, m := range members {
		if m.ControlPlane {
			continue
		}
		if len(planes) > 0 {
			after[m.Name] = append(after[m.Name], planes[len(planes)-1])
		}
		if len(workers) >= lanes {
			after[m.Name] = append(after[m.Name], workers[len(workers)-lanes])
		}
		workers = append(workers, m)
	}

	return after
}
