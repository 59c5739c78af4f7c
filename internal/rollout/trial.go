// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/health"
	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
)

const (
	// trialTimeout is when a node takes a configuration back that was only tried. It is longer than the checks
	// take, and the time until the provider applies the configuration for good.
	trialTimeout = 3 * time.Minute
	// trialLimit bounds the wait for that, restarts of the control plane's pods included.
	trialLimit = 90 * time.Second
)

// harmless lists where configurations differ without an effect on what runs on the node.
var harmless = []string{
	"machine.nodeLabels", "machine.nodeAnnotations", "machine.install", "cluster.extraManifests",
	"cluster.extraManifestHeaders", "cluster.inlineManifests",
}

// trial has a node try a configuration that it applies without a reboot. One that cuts the node off, or that the
// control plane does not start with, is taken back by the node itself, before another node gets it.
type trial struct {
	checker HealthChecker
	member  cluster.Member
}

func (t trial) run(ctx context.Context, api cluster.Talos, configuration []byte) error {
	if !t.needed(ctx, api, configuration) {
		return nil
	}
	if found := t.check(ctx); found != nil {
		// The configuration may be what repairs it, and nothing would tell whether it does harm.
		t.checker.Report(fmt.Sprintf("%s is not healthy, so its configuration is applied without a trial: %v", t.member.Name, found))

		return nil
	}
	t.checker.Report(t.member.Name + " tries its configuration")
	calling, cancel := context.WithTimeout(ctx, t.checker.Poll.Call)
	defer cancel()
	if err := api.Try(calling, t.member.Address, configuration, trialTimeout); err != nil {
		return err
	}

	return t.settle(ctx)
}

// needed reports whether the configuration changes anything that could do harm. A difference that cannot be read
// could.
func (t trial) needed(ctx context.Context, api cluster.Talos, configuration []byte) bool {
	calling, cancel := context.WithTimeout(ctx, t.checker.Poll.Call)
	defer cancel()
	active, err := api.Configuration(calling, t.member.Address)
	if err != nil {
		return true
	}
	lines, err := machineconfig.Differences(configuration, active)

	return err != nil || slices.ContainsFunc(lines, func(line string) bool {
		return !slices.ContainsFunc(harmless, func(path string) bool { return strings.HasPrefix(line, path) })
	})
}

// settle waits until the node was healthy without a break.
func (t trial) settle(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, min(trialLimit, t.checker.Poll.Timeout))
	defer cancel()
	// A static pod that does not start with the configuration is replaced within seconds.
	settle := t.checker.Poll.Interval
	last := errors.New("it was healthy for too short a time")
	var since time.Time
	err := cluster.Poll(waiting, min(time.Second, settle), func(ctx context.Context) (bool, error) {
		if found := t.check(ctx); found != nil {
			cluster.Remember(ctx, &last, found)
			since = time.Time{}

			return false, nil
		}
		if since.IsZero() {
			since = time.Now()
		}

		return time.Since(since) >= settle, nil
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("it does not stay healthy with its new configuration: %w\n  it takes the configuration back within %s "+
			"by itself, and no other node was changed: correct the edit and run `pulumi up` again", last, trialTimeout)
	}

	return err
}

// check looks at the one node, not at those that something else is wrong with.
func (t trial) check(ctx context.Context) error {
	c := t.checker.Cluster
	c.Members, c.Down = []cluster.Member{t.member}, nil
	c.Leaving, c.KubeProxy, c.CoreDNS = true, false, false

	return health.Healthy(ctx, t.checker.Access, c, t.checker.Poll.Call)
}
