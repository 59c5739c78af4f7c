// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

// Apply is one node's way through the gate around a configuration that makes it reboot. Use one for
// each node and run; the zero value is ready.
type Apply struct {
	boot string
}

// Before asks the node whether the configuration makes it reboot, and waits for a turn where it does.
// A machine without a configuration joins with this one, and a cluster that does not serve has nothing
// to lose: neither needs a turn. A node that does not say gets one too, to be sure. The error says
// that the node refuses the configuration, or why there was no turn.
func (a *Apply) Before(ctx context.Context, gate *Gate, checker HealthChecker, m cluster.Member, configuration []byte) error {
	api, err := checker.Access.Talos(ctx)
	if err != nil {
		return err
	}
	reboots, err := a.needsReboot(ctx, api, checker, m, configuration)
	switch {
	case err != nil:
		return fmt.Errorf("node %s: %w", m, err)
	case !reboots, !checker.Lives(ctx):
		return nil
	}
	turn, cancel := context.WithTimeout(ctx, time.Duration(len(checker.Cluster.Members))*2*checker.Poll.Timeout)
	defer cancel()
	if err := gate.Enter(turn, m, checker.Before(m)); err != nil {
		return err
	}
	calling, cancel := context.WithTimeout(ctx, checker.Poll.Call)
	defer cancel()
	a.boot, _ = api.BootID(calling, m.Address) // a node that does not answer boots anyway
	checker.Report(m.Name + " reboots for its configuration")

	return nil
}

// asks is whether the node reboots, or may. The node is asked again when it does not answer at once.
func (a *Apply) needsReboot(ctx context.Context, api cluster.Talos, checker HealthChecker, m cluster.Member, configuration []byte) (bool, error) {
	waiting, cancel := context.WithTimeout(ctx, 4*checker.Poll.Call)
	defer cancel()
	reboots := true
	err := cluster.Poll(waiting, checker.Poll.Interval, func(ctx context.Context) (bool, error) {
		calling, cancel := context.WithTimeout(ctx, checker.Poll.Call)
		defer cancel()
		answer, err := api.Reboots(calling, m.Address, configuration)
		switch {
		case err == nil:
			reboots = answer

			return true, nil
		case status.Code(err) == codes.InvalidArgument:
			return false, err
		}
		if api.Unconfigured(calling, m.Address) {
			reboots = false

			return true, nil
		}

		return false, nil
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return true, nil
	}

	return reboots, err
}

// After waits until a node that got a turn has rebooted and is well, and ends its turn.
func (a *Apply) After(ctx context.Context, gate *Gate, checker HealthChecker, m cluster.Member) error {
	return gate.Leave(ctx, m, func(ctx context.Context, others Others) error {
		if err := a.waitRebooted(ctx, checker, m); err != nil {
			return err
		}

		return checker.After()(ctx, others)
	})
}

// rebooted waits until the node runs another boot: it goes down only after it has taken the
// configuration.
func (a *Apply) waitRebooted(ctx context.Context, checker HealthChecker, m cluster.Member) error {
	api, err := checker.Access.Talos(ctx)
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, checker.Poll.Timeout)
	defer cancel()
	last := errors.New("it has not rebooted yet")
	err = cluster.Poll(waiting, checker.Poll.Interval, func(ctx context.Context) (bool, error) {
		calling, cancel := context.WithTimeout(ctx, checker.Poll.Call)
		defer cancel()
		now, err := api.BootID(calling, m.Address)
		if err != nil {
			cluster.Remember(ctx, &last, err)
		}

		return err == nil && now != a.boot, nil
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("it is not back %s after it got its configuration: %w\n  look at: the console of %s; talosctl -n %s dmesg",
			checker.Poll.Timeout, last, m.Name, m.Address)
	}

	return err
}
