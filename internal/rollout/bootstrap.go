// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

// Bootstrap starts etcd on the first control plane, once in the cluster's life.
type Bootstrap struct {
	// Access opens the cluster.
	Access cluster.Access
	// Cluster is what is supposed to run.
	Cluster cluster.Cluster
	// Poll bounds the wait for the node.
	Poll cluster.PollOptions
	// Report gets a line for each step.
	Report func(string)
}

// peerTimeout bounds the question whether another control plane runs etcd: a node that is just installing does
// not answer, and is not waited for.
const peerTimeout = 5 * time.Second

// Run starts etcd on that control plane as soon as it accepts the request. Where etcd runs anywhere in the
// cluster, or the node has etcd's data, it does nothing: an interrupted run is repeated by running it again,
// and a cluster that lost its first control plane never gets a second etcd.
func (b Bootstrap) Run(ctx context.Context, first cluster.Member) error {
	api, err := b.Access.Talos(ctx)
	if err != nil {
		return fmt.Errorf("bootstrapping on node %s: %w", first, err)
	}
	waiting, cancel := context.WithTimeout(ctx, b.Poll.Timeout)
	defer cancel()

	var last error
	err = cluster.Poll(waiting, b.Poll.Interval, func(ctx context.Context) (bool, error) {
		if m, runs := b.findRunningEtcd(ctx, api); runs {
			b.Report(fmt.Sprintf("etcd runs on %s already: nothing is bootstrapped", m.Name))

			return true, nil
		}
		calling, cancel := context.WithTimeout(ctx, b.Poll.Call)
		defer cancel()
		err := api.Bootstrap(calling, first.Address)
		switch {
		case err == nil:
			b.Report(first.Name + " starts etcd: the cluster is bootstrapped")

			return true, nil
		case status.Code(err) == codes.AlreadyExists:
			b.Report(first.Name + " was bootstrapped by an earlier run")

			return true, nil
		case status.Code(err) == codes.InvalidArgument:
			return false, err
		default:
			cluster.Remember(ctx, &last, err)

			return false, nil
		}
	})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return fmt.Errorf("bootstrapping on node %s: not possible after %s: %w\n  look at: the console of %s; "+
			"is %s its address, is port 50000 reachable from here?", first, b.Poll.Timeout, last, first.Name, first.Address)
	default:
		return fmt.Errorf("bootstrapping on node %s: %w", first, err)
	}
}

// findRunningEtcd asks all control planes at the same time and returns the first that runs an etcd with
// members.
func (b Bootstrap) findRunningEtcd(ctx context.Context, api cluster.Talos) (cluster.Member, bool) {
	calling, cancel := context.WithTimeout(ctx, min(peerTimeout, b.Poll.Call))
	defer cancel()

	planes := b.Cluster.ControlPlanes()
	runs := make([]bool, len(planes))
	var asked sync.WaitGroup
	for i, m := range planes {
		asked.Go(func() {
			services, err := api.Services(calling, m.Address)
			if err != nil || services["etcd"].State != "Running" {
				return
			}
			members, err := api.EtcdMembers(calling, m.Address)
			runs[i] = err == nil && len(members) > 0
		})
	}
	asked.Wait()
	for i, m := range planes {
		if runs[i] {
			return m, true
		}
	}

	return cluster.Member{}, false
}
