// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package health

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

// Unhealthy reports the first check that fails.
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

// Unwrap returns the reason.
func (e *Unhealthy) Unwrap() error { return e.Reason }

// Healthy runs the checks once and returns the first that fails as an [*Unhealthy].
func Healthy(ctx context.Context, access cluster.Access, c cluster.Cluster, perCall time.Duration) error {
	return runChecks(ctx, checks, &checkRun{access: access, cluster: c, perCall: perCall})
}

// runChecks runs the checks and returns the first that fails as an [*Unhealthy].
func runChecks(ctx context.Context, list []healthCheck, l *checkRun) error {
	c := l.cluster
	for _, check := range list {
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

// WaitHealthy polls the cluster that wanted returns until every check passes in one round. It reports each
// new thing that it waits for, and calls mend, unless that is nil, after each round that failed. When the time
// is up it returns the first check that failed in the last round, as an [*Unhealthy].
func WaitHealthy(
	ctx context.Context, access cluster.Access, wanted func() cluster.Cluster, p cluster.PollOptions, report func(line string),
	mend func(context.Context),
) error {
	err := poll(ctx, p, report, mend, func(ctx context.Context) error { return Healthy(ctx, access, wanted(), p.Call) })
	c := wanted()
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("waiting for cluster %q: %w", c.Name, ctx.Err())
	case err != nil:
		return err
	}
	report(fmt.Sprintf("cluster %q is healthy: %d nodes", c.Name, len(c.Members)))

	return nil
}

// WaitSchedulable polls the cluster until its Kubernetes API answers and one node takes pods, whichever it is: enough
// for what runs in the cluster, while other nodes still join. What it reports and returns is as with [WaitHealthy].
func WaitSchedulable(
	ctx context.Context, access cluster.Access, c cluster.Cluster, p cluster.PollOptions, report func(line string),
) error {
	err := poll(ctx, p, report, nil, func(ctx context.Context) error {
		return runChecks(ctx, schedulableChecks, &checkRun{access: access, cluster: c, perCall: p.Call})
	})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("waiting for cluster %q: %w", c.Name, ctx.Err())
	}

	return err
}

// poll calls look until it finds nothing wrong, reports each new thing that it waits for, and calls mend, unless that
// is nil, after each look that found something. When the time is up it returns what was found last.
func poll(
	ctx context.Context, p cluster.PollOptions, report func(line string), mend func(context.Context), look func(context.Context) error,
) error {
	waiting, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()

	var last *Unhealthy
	said := ""
	err := cluster.Poll(waiting, p.Interval, func(ctx context.Context) (bool, error) {
		err := look(ctx)
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
		if mend != nil {
			mend(ctx)
		}

		return false, nil
	})
	if ctx.Err() == nil && last != nil && errors.Is(err, context.DeadlineExceeded) {
		last.Waited = p.Timeout

		return last
	}

	return err
}

func waitingFor(u *Unhealthy) string {
	if u.Node == "" {
		return fmt.Sprintf("waiting: %s: %v", u.Check, u.Reason)
	}

	return fmt.Sprintf("waiting: %s: %s: %v", u.Check, u.Node, u.Reason)
}
