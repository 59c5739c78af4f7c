// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

// Apply leads one node through the gate around a configuration that makes it reboot. Use one for each node and
// run; the zero value is ready.
type Apply struct {
	Reboot
}

// Before asks the node whether the configuration makes it reboot. Where it does, or the node does not answer, it
// waits for a place in the gate and drains the node. A machine without a configuration joins with this one, and a
// cluster that does not serve has nothing to lose: neither needs a place. The error says that the node refuses the
// configuration, or why it may not go down.
func (a *Apply) Before(ctx context.Context, d Disruption, m cluster.Member, configuration []byte) error {
	api, err := d.Checker.Access.Talos(ctx)
	if err != nil {
		return err
	}
	reboots, err := a.needsReboot(ctx, api, d.Checker, m, configuration)
	if err != nil {
		return fmt.Errorf("node %s: %w", m, err)
	}
	if !reboots {
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

// needsReboot reports whether the node reboots, or may. It asks again when the node does not answer at once.
func (a *Apply) needsReboot(
	ctx context.Context, api cluster.Talos, checker HealthChecker, m cluster.Member, configuration []byte,
) (bool, error) {
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
