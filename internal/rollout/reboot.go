// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/health"
)

// Disruption holds what it takes to lead a node through the gate.
type Disruption struct {
	// Gate lets the node go down.
	Gate *Gate
	// Checker runs the checks before and after.
	Checker HealthChecker
	// Drain says how the node is emptied before.
	Drain Drain
	// ApplyTimeout bounds the wait until the node says what a configuration does to it.
	ApplyTimeout time.Duration
}

// turnTimeout bounds the wait for a place in the gate: every other node may take its whole time before.
func (d Disruption) turnTimeout() time.Duration {
	return time.Duration(len(d.Checker.Cluster.Members)) * (d.Drain.Timeout + 2*d.Checker.Poll.Timeout)
}

// Reboot leads one node through the gate around a reboot that something else causes: the provider that edits
// its VM, or Talos when it applies a configuration. Neither drains the node. Use one for each node and run; the
// zero value is ready.
type Reboot struct {
	boot string
}

// Enter waits for a place in the gate and a healthy cluster, and drains the node. When the drain fails the node
// is uncordoned, and the gate closes.
func (r *Reboot) Enter(ctx context.Context, d Disruption, m cluster.Member) error {
	waiting, cancel := context.WithTimeout(ctx, d.turnTimeout())
	defer cancel()
	if err := d.Gate.Enter(waiting, m, d.Checker.Before(m)); err != nil {
		return err
	}
	if err := r.prepare(ctx, d, m); err != nil {
		err = fmt.Errorf("before node %s goes down: %w", m, err)
		d.Gate.Fail(m, err)

		return err
	}

	return nil
}

func (r *Reboot) prepare(ctx context.Context, d Disruption, m cluster.Member) error {
	talos, err := d.Checker.Access.Talos(ctx)
	if err != nil {
		return err
	}
	kubernetes, err := d.Checker.Access.Kubernetes(ctx)
	if err != nil {
		return err
	}
	if err := d.Drain.Empty(ctx, kubernetes, m.Hostname, d.Checker.Report); err != nil {
		return errors.Join(err, Uncordon(context.WithoutCancel(ctx), kubernetes, m.Hostname))
	}
	calling, cancel := context.WithTimeout(ctx, d.Checker.Poll.Call)
	defer cancel()
	r.boot, _ = talos.BootID(calling, m.Address) // a node that does not answer is down already

	return nil
}

// Leave waits until the node that entered runs another boot, uncordons it and gives its place back when the
// cluster is healthy. A node that still runs the same boot gets rebooted by again, once, unless that is nil: then
// it is waited for.
func (r *Reboot) Leave(ctx context.Context, d Disruption, m cluster.Member, again func(context.Context) error) error {
	return d.Gate.Leave(ctx, m, func(ctx context.Context, others Others) error {
		if err := r.waitRebooted(ctx, d.Checker, m, again); err != nil {
			return err
		}
		if err := d.Checker.waitUncordoned(ctx, m); err != nil {
			return err
		}

		return d.Checker.After()(ctx, others)
	})
}

// Fail closes the gate, if the node is inside, and uncordons the node where it still runs.
func (r *Reboot) Fail(ctx context.Context, d Disruption, m cluster.Member, reason error) {
	if !d.Gate.Inside(m) {
		return
	}
	d.Gate.Fail(m, reason)
	calling, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.Checker.Poll.Call)
	defer cancel()
	talos, err := d.Checker.Access.Talos(calling)
	if err == nil {
		_, err = talos.Version(calling, m.Address)
	}
	if err != nil {
		return // the next run finds its mark
	}
	if kubernetes, err := d.Checker.Access.Kubernetes(calling); err == nil {
		_ = Uncordon(calling, kubernetes, m.Hostname) // what cannot be done now the next run does
	}
}

// waitRebooted waits until the node runs another boot.
func (r *Reboot) waitRebooted(
	ctx context.Context, checker HealthChecker, m cluster.Member, again func(context.Context) error,
) error {
	api, err := checker.Access.Talos(ctx)
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, checker.Poll.Timeout)
	defer cancel()

	notYet := errors.New("it has not rebooted yet")
	last := notYet
	err = cluster.Poll(waiting, checker.Poll.Interval, func(ctx context.Context) (bool, error) {
		calling, cancel := context.WithTimeout(ctx, checker.Poll.Call)
		defer cancel()
		now, err := api.BootID(calling, m.Address)
		if err == nil && now != r.boot {
			return true, nil
		}
		cluster.Remember(ctx, &last, cmp.Or(err, notYet))
		if err != nil || again == nil {
			return false, nil
		}
		reboot := again
		again = nil
		checker.Report(m.Name + " still runs as before: it is rebooted now")

		return false, reboot(ctx)
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("it is not back after %s: %w\n  look at: %s", checker.Poll.Timeout, last, health.UnreachableHint(m))
	}

	return err
}

// waitUncordoned uncordons a node that is back. Its own API server may be the only one, and still start.
func (l HealthChecker) waitUncordoned(ctx context.Context, m cluster.Member) error {
	waiting, cancel := context.WithTimeout(ctx, l.Poll.Timeout)
	defer cancel()
	var last error
	err := cluster.Poll(waiting, l.Poll.Interval, func(ctx context.Context) (bool, error) {
		calling, cancel := context.WithTimeout(ctx, l.Poll.Call)
		defer cancel()
		kubernetes, err := l.Access.Kubernetes(calling)
		if err == nil {
			err = Uncordon(calling, kubernetes, m.Hostname)
		}
		if err != nil {
			cluster.Remember(ctx, &last, err)
		}

		return err == nil, nil
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("it could not be uncordoned in %s: %w", l.Poll.Timeout, last)
	}

	return err
}
