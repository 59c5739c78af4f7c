// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package cluster

import (
	"context"
	"time"
)

// Poll says how long and how often to look.
type PollOptions struct {
	// Timeout bounds the whole wait.
	Timeout time.Duration
	// Interval is the longest pause between two looks; the first ones are shorter.
	Interval time.Duration
	// Call bounds one look at one node.
	Call time.Duration
}

// DefaultPatience suits real clusters.
func DefaultPollOptions(timeout time.Duration) PollOptions {
	return PollOptions{Timeout: timeout, Interval: 5 * time.Second, Call: 15 * time.Second}
}

// firstPause is the pause after the first look; each following one is longer by half.
const firstPause = 200 * time.Millisecond

// poll runs look until it is done, it fails or the context ends.
func Poll(ctx context.Context, longest time.Duration, look func(context.Context) (bool, error)) error {
	pause := min(firstPause, longest)
	for {
		done, err := look(ctx)
		if done || err != nil {
			return err
		}

		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()

			return ctx.Err()
		case <-timer.C:
		}
		pause = min(pause+pause/2, longest)
	}
}

// remember keeps why a look found nothing yet. What was only cut short by the end of the whole wait
// says nothing, so the reason before it stays.
func Remember(ctx context.Context, last *error, err error) {
	if ctx.Err() == nil || *last == nil {
		*last = err
	}
}
