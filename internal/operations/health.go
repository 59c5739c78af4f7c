// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package operations

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Patience says how long and how often to look.
type Patience struct {
	// Timeout bounds the whole wait.
	Timeout time.Duration
	// Interval is the longest pause between two looks; the first ones are shorter.
	Interval time.Duration
	// Call bounds one look at one node.
	Call time.Duration
}

// DefaultPatience suits real clusters.
func DefaultPatience(timeout time.Duration) Patience {
	return Patience{Timeout: timeout, Interval: 5 * time.Second, Call: 15 * time.Second}
}

// Unhealthy is the first check that a cluster does not pass.
type Unhealthy struct {
	// Cluster that was looked at.
	Cluster string
	// Check that does not pass, "etcd runs on every control plane".
	Check string
	// Node it is about; empty when it is about the cluster.
	Node string
	// Reason is what was seen last.
	Reason error
	// Hint says what to look at.
	Hint string
	// Waited is how long the cluster was given; 0 for a single look.
	Waited time.Duration
}

// Error names cluster, check, node, reason and what to look at.
func (e *Unhealthy) Error() string {
	where := ""
	if e.Node != "" {
		where = " on node " + e.Node
	}
	text := fmt.Sprintf("cluster %q is not healthy", e.Cluster)
	if e.Waited > 0 {
		text += fmt.Sprintf(" after %s", e.Waited.Round(time.Second))
	}
	text += fmt.Sprintf(": check %q fails%s: %v", e.Check, where, e.Reason)
	if e.Hint != "" {
		text += "\n  look at: " + e.Hint
	}

	return text
}

// Unwrap is the reason.
func (e *Unhealthy) Unwrap() error { return e.Reason }

// Healthy looks once and returns the first check that does not pass as an [*Unhealthy].
func Healthy(ctx context.Context, access Access, c Cluster, perCall time.Duration) error {
	l := &look{access: access, cluster: c, perCall: perCall}
	for _, check := range checks {
		if check.skip != nil && check.skip(c) {
			continue
		}
		if found := check.run(ctx, l); found != nil {
			return &Unhealthy{
				Cluster: c.Name, Check: check.name, Node: found.node, Reason: found.reason, Hint: found.hint,
			}
		}
	}

	return nil
}

// WaitHealthy looks until every check passes in one round, and returns the first check that did not
// pass in the last round when the time is up. It reports each new thing that it waits for.
func WaitHealthy(ctx context.Context, access Access, c Cluster, p Patience, report func(line string)) error {
	return waitHealthy(ctx, access, constant(c), p, report, func(context.Context) {})
}

// constant is a cluster that stays as it is while one waits.
func constant(c Cluster) func() Cluster { return func() Cluster { return c } }

// waitHealthy is [WaitHealthy] of what cluster says in each round, that may mend something after each
// round that found it unwell.
func waitHealthy(
	ctx context.Context, access Access, cluster func() Cluster, p Patience, report func(line string),
	mend func(context.Context),
) error {
	waiting, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()

	var last *Unhealthy
	said := ""
	err := poll(waiting, p.Interval, func(ctx context.Context) (bool, error) {
		err := Healthy(ctx, access, cluster(), p.Call)
		if err == nil {
			return true, nil
		}

		var found *Unhealthy
		if !errors.As(err, &found) {
			return false, err
		}
		// What a look says whose time ran out tells nothing about the node.
		if last == nil || ctx.Err() == nil {
			last = found
		}
		if line := waitingFor(last); line != said {
			said = line
			report(line)
		}
		mend(ctx)

		return false, nil
	})
	switch {
	case err == nil:
		c := cluster()
		report(fmt.Sprintf("cluster %q is healthy: %d nodes", c.Name, len(c.Members)))

		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("waiting for cluster %q: %w", cluster().Name, ctx.Err())
	case last != nil && errors.Is(err, context.DeadlineExceeded):
		last.Waited = p.Timeout

		return last
	default:
		return err
	}
}

func waitingFor(u *Unhealthy) string {
	if u.Node == "" {
		return fmt.Sprintf("waiting: %s: %v", u.Check, u.Reason)
	}

	return fmt.Sprintf("waiting: %s: %s: %v", u.Check, u.Node, u.Reason)
}

// firstPause is the pause after the first look; each following one is longer by half.
const firstPause = 200 * time.Millisecond

// poll runs look until it is done, it fails or the context ends.
func poll(ctx context.Context, longest time.Duration, look func(context.Context) (bool, error)) error {
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
func remember(ctx context.Context, last *error, err error) {
	if ctx.Err() == nil || *last == nil {
		*last = err
	}
}
