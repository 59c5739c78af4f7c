// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"time"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
	"github.com/talos-proxmox/talos-proxmox/internal/talosapi"
)

// reapplyInterval is how often a node that is awaited is asked whether it waits for a configuration. It takes
// longer to start an installation than to say that it has begun.
const reapplyInterval = 10 * time.Second

// reapplyLostConfigs sends their configuration again to nodes that crashed before writing it to disk, until
// stop is called: their resource says that they have it. Give only nodes that were never seen to run; a
// machine that was wiped on purpose is not configured behind its owner's back.
func reapplyLostConfigs(s *Session, step hook.Step, members []cluster.Member) (stop func()) {
	watching, cancel := context.WithCancel(s.Ctx.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		rollout.ConfigReapplier{
			Members: members, Interval: reapplyInterval, Report: s.reporting(step),
			InMaintenance: talosapi.InMaintenance, Apply: talosapi.Configure,
			Config: func(node string) (string, bool) {
				text, known := s.configs.Load(node)
				if !known {
					return "", false
				}
				config, ok := text.(string)

				return config, ok
			},
		}.Watch(watching)
	}()

	return func() {
		cancel()
		<-done
	}
}
