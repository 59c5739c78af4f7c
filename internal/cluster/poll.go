// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package cluster

import (
	"context"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// PollOptions bounds a wait and sets how often to check.
type PollOptions struct {
	// Timeout bounds the whole wait.
	Timeout time.Duration
	// Interval is the longest pause between two looks; the first ones are shorter.
	Interval time.Duration
	// Call bounds one look at one node.
	Call time.Duration
}

// DefaultPollOptions returns the options for real clusters.
func DefaultPollOptions(timeout time.Duration) PollOptions {
	return PollOptions{Timeout: timeout, Interval: 5 * time.Second, Call: 15 * time.Second}
}

// firstPause is the pause after the first check.
const firstPause = 200 * time.Millisecond

// Poll calls check until it is done, it fails or the context ends. The pause after the first call is short,
// each following one longer by half.
func Poll(ctx context.Context, longest time.Duration, check func(context.Context) (bool, error)) error {
	pauses := wait.Backoff{Duration: min(firstPause, longest), Factor: 1.5, Cap: longest, Steps: math.MaxInt}

	return pauses.DelayFunc().Until(ctx, true, true, check)
}

// Remember stores in last why a check did not succeed yet. An error that only says that the whole wait ended
// explains nothing, so the reason before it stays.
func Remember(ctx context.Context, last *error, err error) {
	if ctx.Err() == nil || *last == nil {
		*last = err
	}
}
