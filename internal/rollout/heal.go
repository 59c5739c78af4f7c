// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

// Heal removes what an earlier life of a node left in a cluster that serves, before the node joins
// anew: its member of etcd and its Node. A machine that was replaced without leaving first leaves both
// behind. Only a machine that waits in maintenance mode has no life any more; one that still runs as the
// cluster's is left alone. Where nothing was left behind the machine is not waited for.
func Heal(ctx context.Context, look HealthChecker, m cluster.Member) error {
	if !look.Lives(ctx) {
		return nil
	}
	talos, err := look.Access.Talos(ctx)
	if err != nil {
		return err
	}
	r := Retire{Access: look.Access, Cluster: look.Cluster, Poll: look.Poll, Report: look.Report}
	r.Cluster.Members = slices.DeleteFunc(slices.Clone(look.Cluster.Members), func(o cluster.Member) bool { return o.Name == m.Name })
	var member *cluster.EtcdMember
	var api kubernetes.Interface
	known := false
	// A cluster that an interrupted run has just started may not say yet. It may also wait for this very
	// node, so it is not asked for long.
	asking, cancel := context.WithTimeout(ctx, 4*look.Poll.Call)
	defer cancel()
	var last error
	err = cluster.Poll(asking, look.Poll.Interval, func(ctx context.Context) (bool, error) {
		var err error
		if member, err = r.findMember(ctx, talos, m); err == nil {
			api, err = look.Access.Kubernetes(ctx)
		}
		if err == nil {
			known, err = isRegistered(ctx, api, m)
		}
		if err != nil {
			cluster.Remember(ctx, &last, err)
		}

		return err == nil, nil
	})
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("node %s: %w", m, ctx.Err())
	case err != nil:
		look.Report(fmt.Sprintf("nobody says whether there was an earlier %s: %v", m.Name, last))

		return nil
	}
	if member == nil && !known {
		return nil
	}
	if blank, err := look.waitBlank(ctx, talos, m); err != nil || !blank {
		return err
	}

	if member != nil {
		look.Report(m.Name + " starts anew: etcd forgets its earlier member")
		if err := r.removeMember(ctx, talos, *member); err != nil {
			return fmt.Errorf("node %s: %w", m, err)
		}
	}
	if known {
		look.Report(m.Name + " starts anew: Kubernetes forgets its earlier node")
		err := api.CoreV1().Nodes().Delete(ctx, m.Hostname, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("node %s: removing it from Kubernetes: %w", m, err)
		}
	}

	return nil
}

// blank waits until the machine answers, and says whether it waits for a configuration.
func (l HealthChecker) waitBlank(ctx context.Context, talos cluster.Talos, m cluster.Member) (bool, error) {
	waiting, cancel := context.WithTimeout(ctx, l.Poll.Timeout)
	defer cancel()
	blank := false
	err := cluster.Poll(waiting, l.Poll.Interval, func(ctx context.Context) (bool, error) {
		calling, cancel := context.WithTimeout(ctx, l.Poll.Call)
		defer cancel()
		if talos.Unconfigured(calling, m.Address) {
			blank = true

			return true, nil
		}
		_, err := talos.Version(calling, m.Address)

		return err == nil, nil
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return false, fmt.Errorf("node %s: the machine does not answer after %s, and etcd or Kubernetes still have an earlier one "+
			"of its name\n  look at: the console of %s", m, l.Poll.Timeout, m.Name)
	}

	return blank, err
}
