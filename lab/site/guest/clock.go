// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package guest

import (
	"context"
	"time"
)

// Clock scales the site's own waits (boot, install, image pull); it never changes what time it is.
type Clock struct {
	// Speed divides every wait: 60 makes a minute of the site a second of ours. 0 counts as 1.
	Speed float64
	// Steps are those that take other than what the lab takes for them.
	Steps Steps
}

// Scale tells how long d takes on this site.
func (c Clock) Scale(d time.Duration) time.Duration {
	if c.Speed <= 0 {
		return d
	}

	return time.Duration(float64(d) / c.Speed)
}

// Sleep waits d of the site's time, or until ctx ends.
func (c Clock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(c.Scale(d))
	defer t.Stop()

	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
