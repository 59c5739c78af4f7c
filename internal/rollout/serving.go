// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

// Serving reports whether the cluster has something to lose by another node that goes down: whether a control
// plane serves etcd. Silence is no answer: once the cluster was bootstrapped, Serving asks until a control
// plane answers or the time is up, and then fails. It returns false for a cluster that was never bootstrapped,
// and for one whose control planes all wait for their first configuration or are named in Force.
func (l HealthChecker) Serving(ctx context.Context) (bool, error) {
	api, err := l.Access.Talos(ctx)
	if err != nil {
		return false, err
	}
	waiting, cancel := context.WithTimeout(ctx, l.Poll.Timeout)
	defer cancel()

	serving, asked := false, false
	var last error
	err = cluster.Poll(waiting, l.Poll.Interval, func(ctx context.Context) (bool, error) {
		var silent error
		if serving, silent = l.askPlanes(ctx, api); silent == nil {
			return true, nil
		}
		cluster.Remember(ctx, &last, silent)
		if !asked {
			asked = true
			if !l.wasBootstrapped(ctx) {
				return true, nil
			}
			l.Report(fmt.Sprintf("waiting: no control plane of cluster %q serves etcd: %v", l.Cluster.Name, last))
		}

		return false, nil
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return false, fmt.Errorf("cluster %q was bootstrapped, and no control plane said within %s that it serves etcd: "+
			"nothing is taken down while it is unknown what is still up: %w\n"+
			"  look at: is port 50000 of the control planes reachable from here? When the cluster is lost for good, "+
			"name its control planes in lifecycle.force", l.Cluster.Name, l.Poll.Timeout, last)
	}

	return serving, err
}

// askPlanes asks all control planes at the same time whether one of them serves etcd. The error says why that
// is unknown: which of them neither answered, nor wait for a configuration, nor were given up.
func (l HealthChecker) askPlanes(ctx context.Context, api cluster.Talos) (bool, error) {
	planes := l.Cluster.ControlPlanes()
	errs := make([]error, len(planes))
	serves := make([]bool, len(planes))
	var asking sync.WaitGroup
	for i, m := range planes {
		asking.Go(func() { serves[i], errs[i] = l.askPlane(ctx, api, m) })
	}
	asking.Wait()
	if slices.Contains(serves, true) {
		return true, nil
	}

	return false, errors.Join(errs...)
}

// askPlane reports whether a control plane serves etcd; the error says that this is unknown.
func (l HealthChecker) askPlane(ctx context.Context, api cluster.Talos, m cluster.Member) (bool, error) {
	calling, cancel := context.WithTimeout(ctx, l.Poll.Call)
	defer cancel()
	members, err := api.EtcdMembers(calling, m.Address)
	switch {
	case err == nil && len(members) > 0:
		return true, nil
	case slices.Contains(l.Force, m.Name):
		return false, nil
	case err == nil:
		return false, fmt.Errorf("%s: its etcd has no members", m)
	}
	asking, cancelAsking := context.WithTimeout(ctx, l.Poll.Call)
	defer cancelAsking()
	if api.Unconfigured(asking, m.Address) {
		return false, nil
	}

	return false, fmt.Errorf("%s: %w", m, err)
}

// wasBootstrapped fails closed: a state that cannot be read may hold a cluster.
func (l HealthChecker) wasBootstrapped(ctx context.Context) bool {
	if l.Bootstrapped == nil {
		return true
	}
	bootstrapped, err := l.Bootstrapped(ctx)
	if err != nil {
		l.Report(fmt.Sprintf("cannot tell whether cluster %q was bootstrapped, so it counts as bootstrapped: %v", l.Cluster.Name, err))
	}

	return bootstrapped || err != nil
}
