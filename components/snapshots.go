// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"sync"
	"time"

	"github.com/talos-proxmox/talos-proxmox/internal/operations"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// runSnapshots are the snapshots of one run, made when the cluster can be reached.
type runSnapshots struct {
	once sync.Once
	of   *operations.Snapshots
}

// snapshots are those that are taken before an upgrade, the same for the whole run; nil when nobody
// wants any.
func (c *TalosCluster) snapshots(access operations.Access) *operations.Snapshots {
	l := c.config.Lifecycle
	if l.SnapshotDirectory == nil {
		return nil
	}
	c.taken.once.Do(func() {
		c.taken.of = &operations.Snapshots{
			Access: access, Cluster: c.secrets.access.cluster, Directory: *l.SnapshotDirectory,
			Keep: spec.Or(l.SnapshotsKept, 5), Patience: operations.DefaultPatience(duration(l.UpgradeTimeout, 20*time.Minute)),
		}
	})

	return c.taken.of
}
