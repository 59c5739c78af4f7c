// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"sync"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
)

// runSnapshots are the snapshots of one run, made when the cluster can be reached.
type runSnapshots struct {
	once sync.Once
	of   *rollout.Snapshots
}

// snapshotsOf returns the snapshots that are taken before an upgrade, the same for the whole run; nil when
// the stack asks for none.
func snapshotsOf(s *Session, access cluster.Access) *rollout.Snapshots {
	l := s.Config.Lifecycle
	if l.SnapshotDirectory == nil {
		return nil
	}
	s.snapshots.once.Do(func() {
		s.snapshots.of = &rollout.Snapshots{
			Access: access, Cluster: s.Cluster, Directory: *l.SnapshotDirectory,
			Keep: *l.SnapshotsKept, Poll: pollOptions(l.UpgradeTimeout),
		}
	})

	return s.snapshots.of
}
