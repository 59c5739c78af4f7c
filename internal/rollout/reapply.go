// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout

import (
	"context"
	"fmt"
	"time"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

// ConfigReapplier re-sends the first configuration to nodes that lost it: a machine that crashes between
// accepting its first configuration and writing it to disk is back in maintenance mode, while the state says
// that it was configured.
type ConfigReapplier struct {
	// Members that have not been seen to run yet. Others are left alone.
	Members []cluster.Member
	// Config is a node's configuration, by its name.
	Config func(node string) (config string, known bool)
	// Interval is between looks, and before the first one: a node that has just taken its configuration
	// needs a moment to go and install it.
	Interval time.Duration
	// Waits is nil when the machine at an address waits for its first configuration; [InMaintenance].
	InMaintenance func(ctx context.Context, address string) error
	// Apply brings it; [Configure].
	Apply func(ctx context.Context, address, config string) error
	// Report gets a line for each node that gets its configuration again.
	Report func(string)
}

// askLimit bounds one question whether a node is in maintenance mode.
const askLimit = 5 * time.Second

// Watch checks the members until the context ends.
func (f ConfigReapplier) Watch(ctx context.Context) {
	every(ctx, f.Interval, func() {
		for _, m := range f.Members {
			if ctx.Err() != nil {
				return // it ended while the tick was taken
			}
			f.check(ctx, m)
		}
	})
}

// every runs a function at each interval, from the end of the first one on, until the context ends.
func every(ctx context.Context, interval time.Duration, run func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			run()
		}
	}
}

func (f ConfigReapplier) check(ctx context.Context, m cluster.Member) {
	config, known := f.Config(m.Name)
	if !known {
		return
	}
	asking, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	if f.InMaintenance(asking, m.Address) != nil {
		return // it runs, or it is not there: whoever waits for it says so
	}
	if err := f.Apply(asking, m.Address, config); err != nil {
		f.Report(fmt.Sprintf("%s waits for its first configuration again, and does not take it: %v", m.Name, err))

		return
	}
	f.Report(m.Name + " waited for its first configuration again, and got it")
}
