// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/health"
)

// Apply leads one node through a change of its configuration. Use one for each node and run; the zero value is
// ready.
type Apply struct {
	Reboot
}

// effect holds what applying a configuration does to a node.
type effect int

const (
	// reboots the node.
	reboots effect = iota
	// inPlace changes the node while it runs.
	inPlace
	// joins the node to the cluster: it has no configuration yet.
	joins
)

// Before asks the node what the configuration does to it, until it answers or ApplyTimeout is over: the provider
// would go on for ten minutes whatever it is told. Where the node reboots, Before waits for a place in the gate and
// drains the node. What is applied in place is tried first, and must leave the
// node healthy, or the node takes it back. A machine without a configuration joins with this one, and a cluster
// that does not serve has nothing to lose: neither waits. The error says that the node refuses the configuration,
// or why it may not be applied.
func (a *Apply) Before(ctx context.Context, d Disruption, m cluster.Member, configuration []byte) error {
	api, err := d.Checker.Access.Talos(ctx)
	if err != nil {
		return err
	}
	does, err := effectOf(ctx, api, d, m, configuration)
	switch {
	case err != nil:
		return fmt.Errorf("node %s: %w", m, err)
	case does == joins:
		return nil
	case does == inPlace:
		if err := (trial{checker: d.Checker, gate: d.Gate, member: m}).run(ctx, api, configuration); err != nil {
			return fmt.Errorf("node %s: %w", m, err)
		}

		return nil
	}
	if serving, err := d.Checker.Serving(ctx); err != nil || !serving {
		return err
	}
	if err := a.Enter(ctx, d, m); err != nil {
		return err
	}
	d.Checker.Report(m.Name + " reboots for its configuration")

	return nil
}

// After waits until a node that entered has rebooted and is healthy, and gives its place back.
func (a *Apply) After(ctx context.Context, d Disruption, m cluster.Member) error {
	return a.Leave(ctx, d, m, nil)
}

// effectOf asks the node what the configuration does to it, and asks again while it does not answer.
func effectOf(ctx context.Context, api cluster.Talos, d Disruption, m cluster.Member, configuration []byte) (effect, error) {
	limit := cmp.Or(d.ApplyTimeout, d.Checker.Poll.Timeout)
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	does := reboots
	var last error
	err := cluster.Poll(waiting, d.Checker.Poll.Interval, func(ctx context.Context) (bool, error) {
		calling, cancel := context.WithTimeout(ctx, d.Checker.Poll.Call)
		defer cancel()
		needsReboot, err := api.Reboots(calling, m.Address, configuration)
		switch {
		case err == nil && !needsReboot:
			does = inPlace

			return true, nil
		case err == nil:
			return true, nil
		case status.Code(err) == codes.InvalidArgument:
			return false, err
		}
		cluster.Remember(ctx, &last, err)
		if api.Unconfigured(calling, m.Address) {
			does = joins

			return true, nil
		}

		return false, nil
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return reboots, fmt.Errorf("it did not take its configuration: it did not say within %s what that would do: %w\n  look at: %s",
			limit, last, health.UnreachableHint(m))
	}

	return does, err
}
