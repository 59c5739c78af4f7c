// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/talos-proxmox/talos-proxmox/internal/versions"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

// Upgrade brings one node to another Talos image, in place.
type Upgrade struct {
	// Access opens the cluster.
	Access cluster.Access
	// Cluster is what is supposed to run.
	Cluster cluster.Cluster
	// Gate lets the node go down.
	Gate *Gate
	// Drain says how the node is emptied before.
	Drain Drain
	// Snapshots are taken of etcd before; nil for none.
	Snapshots *Snapshots
	// Poll bounds the node's own upgrade, its reboot included, and then each look at health.
	Poll cluster.PollOptions
	// Report gets a line for each step.
	Report func(string)
}

// Run upgrades the node unless it runs the image already: it waits for its turn and a healthy cluster, drains
// the node, installs the image, waits until the node is back with it, and uncordons it. Steps that were done
// before are skipped, so that an interrupted upgrade is repeated by running it again. The error names the step
// that failed and what to do.
func (u Upgrade) Run(ctx context.Context, m cluster.Member, image cluster.Image) error {
	api, err := u.Access.Talos(ctx)
	if err != nil {
		return fmt.Errorf("upgrading node %s: %w", m, err)
	}
	runs, err := u.waitIdle(ctx, api, m)
	if err != nil {
		return fmt.Errorf("upgrading node %s: asking what it runs: %w\n"+
			"  nothing was changed; when it answers again, run `pulumi up` again", m, err)
	}
	if cluster.SameImage(runs, image) {
		done, err := u.confirmRunning(ctx, m, runs, image)
		if err != nil || done {
			return err
		}
	}
	if err := checkTalosStep(runs.Version, image.Version); err != nil {
		return fmt.Errorf("upgrading node %s: %w", m, err)
	}

	if err := u.prePullImage(ctx, api, m, image); err != nil {
		return fmt.Errorf("upgrading node %s: %w\n  nothing was changed; when the registry answers, run `pulumi up` again", m, err)
	}

	turn, cancel := context.WithTimeout(ctx, u.turnTimeout())
	defer cancel()
	if err := u.Gate.Enter(turn, m, u.healthChecker().Before(m)); err != nil {
		return fmt.Errorf("upgrading node %s: %w", m, err)
	}
	if err := u.Snapshots.Take(ctx, "talos-"+runs.Version, u.Report); err != nil {
		err = fmt.Errorf("upgrading node %s: %w\n  this node was not changed", m, err)
		u.Gate.Fail(m, err)

		return err
	}
	u.Report(fmt.Sprintf("%s goes from Talos %s to %s", m.Name, runs, image))
	if err := u.replaceImage(ctx, api, m, image); err != nil {
		err = fmt.Errorf("upgrading node %s: %w", m, err)
		u.Gate.Fail(m, err)

		return err
	}
	if err := u.Gate.Leave(ctx, m, u.healthChecker().After()); err != nil {
		return fmt.Errorf("upgrading node %s: %w", m, err)
	}

	return nil
}

// waitIdle waits until the node answers and does nothing else, and returns what it runs: an interrupted
// upgrade continues by itself on the node.
func (u Upgrade) waitIdle(ctx context.Context, api cluster.Talos, m cluster.Member) (cluster.Image, error) {
	waiting, cancel := context.WithTimeout(ctx, u.Poll.Timeout)
	defer cancel()

	var runs cluster.Image
	var last error
	said := false
	err := cluster.Poll(waiting, u.Poll.Interval, func(ctx context.Context) (bool, error) {
		var err error
		runs, err = u.runningImage(ctx, api, m)
		if err == nil {
			err = u.checkIdle(ctx, api, m)
		}
		if err == nil {
			return true, nil
		}
		cluster.Remember(ctx, &last, err)
		if !said {
			said = true
			u.Report(fmt.Sprintf("waiting for %s: %v", m.Name, err))
		}

		return false, nil
	})
	if err != nil && ctx.Err() == nil {
		return cluster.Image{}, last
	}

	return runs, err
}

// checkIdle returns an error while the node installs, upgrades or reboots.
func (u Upgrade) checkIdle(ctx context.Context, api cluster.Talos, m cluster.Member) error {
	calling, cancel := context.WithTimeout(ctx, u.Poll.Call)
	defer cancel()
	stage, _, err := api.Stage(calling, m.Address)
	switch {
	case err != nil:
		return err
	case stage == "upgrading", stage == "rebooting", stage == "installing":
		return fmt.Errorf("the machine is in stage %q", stage)
	default:
		return nil
	}
}

// prePullImage pulls the image while the node still works, so that it is down for less time, and an image that
// does not exist is found before anything changes.
func (u Upgrade) prePullImage(ctx context.Context, api cluster.Talos, m cluster.Member, image cluster.Image) error {
	pulling, cancel := context.WithTimeout(ctx, u.Poll.Timeout)
	defer cancel()
	u.Report(fmt.Sprintf("%s pulls %s", m.Name, image.Installer))

	return api.Pull(pulling, m.Address, cluster.Installer, image.Installer)
}

// turnTimeout bounds the wait for a place in the gate: every other node may take its whole time before.
func (u Upgrade) turnTimeout() time.Duration {
	return time.Duration(len(u.Cluster.Members)) * (u.Drain.Timeout + 2*u.Poll.Timeout)
}

// replaceImage takes the node down and waits until it is back.
func (u Upgrade) replaceImage(ctx context.Context, api cluster.Talos, m cluster.Member, image cluster.Image) error {
	kubernetes, err := u.Access.Kubernetes(ctx)
	if err != nil {
		return err
	}
	if err := u.Drain.Empty(ctx, kubernetes, m.Hostname, u.Report); err != nil {
		// The node did not go down: give it back.
		return errors.Join(err, Uncordon(context.WithoutCancel(ctx), kubernetes, m.Hostname))
	}
	boot, err := api.BootID(ctx, m.Address)
	if err != nil {
		return err
	}
	if err := u.install(ctx, api, kubernetes, m, image); err != nil {
		return errors.Join(err, Uncordon(context.WithoutCancel(ctx), kubernetes, m.Hostname))
	}
	if err := u.waitForImage(ctx, api, m, image, boot); err != nil {
		return err
	}
	if err := markInstalledImage(ctx, kubernetes, m.Hostname, ""); err != nil {
		return err
	}

	return Uncordon(ctx, kubernetes, m.Hostname)
}

// waitForImage waits until the node runs the image. A node that came back with another one rolled back by
// itself.
func (u Upgrade) waitForImage(ctx context.Context, api cluster.Talos, m cluster.Member, image cluster.Image, boot string) error {
	waiting, cancel := context.WithTimeout(ctx, u.Poll.Timeout)
	defer cancel()

	var last error
	err := cluster.Poll(waiting, u.Poll.Interval, func(ctx context.Context) (bool, error) {
		calling, cancel := context.WithTimeout(ctx, u.Poll.Call)
		defer cancel()
		now, err := api.BootID(calling, m.Address)
		if err != nil || now == boot {
			cluster.Remember(ctx, &last, cmp.Or(err, errors.New("it has not rebooted yet")))

			return false, nil
		}
		runs, err := u.runningImage(calling, api, m)
		if err != nil {
			cluster.Remember(ctx, &last, err)

			return false, nil
		}
		if !cluster.SameImage(runs, image) {
			return false, fmt.Errorf("it came back with Talos %s instead of %s: it could not boot the new image and went back\n"+
				"  look at: the console of %s; talosctl -n %s dmesg", runs, image, m.Name, m.Address)
		}
		u.Report(fmt.Sprintf("%s is back with Talos %s", m.Name, runs))

		return true, nil
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("it is not back with Talos %s after %s: %w\n  look at: the console of %s; "+
			"when it is back, run `pulumi up` again", image, u.Poll.Timeout, last, m.Name)
	}

	return err
}

// healthChecker returns the checks to run before and after.
func (u Upgrade) healthChecker() HealthChecker {
	return HealthChecker{Access: u.Access, Cluster: u.Cluster, Poll: u.Poll, Report: u.Report}
}

// runningImage returns the image that the node runs.
func (u Upgrade) runningImage(ctx context.Context, api cluster.Talos, m cluster.Member) (cluster.Image, error) {
	calling, cancel := context.WithTimeout(ctx, u.Poll.Call)
	defer cancel()
	version, err := api.Version(calling, m.Address)
	if err != nil {
		return cluster.Image{}, err
	}
	schematic, err := api.Schematic(calling, m.Address)

	return cluster.Image{Version: version, Schematic: schematic}, err
}

// checkTalosStep returns nil when Talos can go from one version to the other in one step.
func checkTalosStep(from, to string) error {
	running, err := versions.ParseTalos(from)
	if err != nil {
		return err
	}
	wanted, err := versions.ParseTalos(to)
	if err != nil {
		return err
	}

	return versions.TalosStep(running, wanted)
}

// Order returns, by name, the members that each member's upgrade comes after: control planes one after the other, then
// workers behind the last of them in as many lanes as may be unavailable.
func Order(members []cluster.Member, lanes int) map[string][]cluster.Member {
	after := make(map[string][]cluster.Member, len(members))
	planes := cluster.Cluster{Members: members}.ControlPlanes()
	for i, m := range planes {
		if i > 0 {
			after[m.Name] = planes[i-1 : i]
		}
	}
	var workers []cluster.Member
	for _, m := range members {
		if m.ControlPlane {
			continue
		}
		if len(planes) > 0 {
			after[m.Name] = append(after[m.Name], planes[len(planes)-1])
		}
		if len(workers) >= lanes {
			after[m.Name] = append(after[m.Name], workers[len(workers)-lanes])
		}
		workers = append(workers, m)
	}

	return after
}
