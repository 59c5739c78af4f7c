// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"sync"
	"time"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// runSnapshots are the snapshots of one run, made when the cluster can be reached.
type runSnapshots struct {
	once sync.Once
	of   *rollout.Snapshots
}

// snapshots are those that are taken before an upgrade, the same for the whole run; nil when nobody
// wants any.
func (c *TalosCluster) snapshots(access cluster.Access) *rollout.Snapshots {
	l := c.config.Lifecycle
	if l.SnapshotDirectory == nil {
		return nil
	}
	c.taken.once.Do(func() {
		c.taken.of = &rollout.Snapshots{
			Access: access, Cluster: c.secrets.access.cluster, Directory: *l.SnapshotDirectory,
			Keep: spec.Or(l.SnapshotsKept, 5), Poll: cluster.DefaultPollOptions(duration(l.UpgradeTimeout, 20*time.Minute)),
		}
	})

	return c.taken.of
}
