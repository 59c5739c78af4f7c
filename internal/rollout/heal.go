// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

// Heal deletes the stale etcd member and Node of a replaced machine before its successor joins. A machine that
// was replaced without leaving first leaves both behind. Only a machine in maintenance mode is a successor;
// one that still runs as a member is left alone. Where nothing was left behind the machine is not waited for.
func Heal(ctx context.Context, checker HealthChecker, m cluster.Member) error {
	if serving, err := checker.Serving(ctx); err != nil || !serving {
		return err
	}
	talos, err := checker.Access.Talos(ctx)
	if err != nil {
		return err
	}
	r := Retire{Access: checker.Access, Cluster: checker.Cluster, Poll: checker.Poll, Report: checker.Report}
	r.Cluster.Members = slices.DeleteFunc(slices.Clone(checker.Cluster.Members), func(o cluster.Member) bool { return o.Name == m.Name })
	member, api, err := r.findEarlier(ctx, talos, m)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("node %s: %w", m, ctx.Err())
	case err != nil:
		checker.Report(fmt.Sprintf("cannot tell whether there was an earlier %s: %v", m.Name, err))

		return nil
	}
	if member == nil && api == nil {
		return nil
	}
	if blank, err := checker.waitBlank(ctx, talos, m); err != nil || !blank {
		return err
	}
	if member != nil {
		checker.Report(m.Name + " rejoins: its earlier etcd member is removed")
		if err := r.removeMember(ctx, talos, *member); err != nil {
			return fmt.Errorf("node %s: %w", m, err)
		}
	}
	if api == nil {
		return nil
	}

	return deleteEarlierNode(ctx, api, m, checker.Report)
}

// findEarlier returns the etcd member that a replaced machine left behind, nil where there is none, and the Kubernetes API
// if it has its Node, else nil.
func (r Retire) findEarlier(
	ctx context.Context, talos cluster.Talos, m cluster.Member,
) (member *cluster.EtcdMember, api kubernetes.Interface, err error) {
	// A cluster that an interrupted run has just started may not say yet. It may also wait for this very
	// node, so it is not asked for long.
	asking, cancel := context.WithTimeout(ctx, 4*r.Poll.Call)
	defer cancel()
	var last error
	known := false
	err = cluster.Poll(asking, r.Poll.Interval, func(ctx context.Context) (bool, error) {
		var err error
		if member, err = r.findMember(ctx, talos, m); err == nil {
			api, err = r.Access.Kubernetes(ctx)
		}
		if err == nil {
			known, err = isRegistered(ctx, api, m)
		}
		if err != nil {
			cluster.Remember(ctx, &last, err)
		}

		return err == nil, nil
	})
	if err != nil {
		return nil, nil, cmp.Or(last, err)
	}
	if !known {
		api = nil
	}

	return member, api, nil
}

// deleteEarlierNode deletes the Node that a replaced machine left behind.
func deleteEarlierNode(ctx context.Context, api kubernetes.Interface, m cluster.Member, report func(string)) error {
	report(m.Name + " rejoins: its earlier Node is deleted")
	err := api.CoreV1().Nodes().Delete(ctx, m.Hostname, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("node %s: removing it from Kubernetes: %w", m, err)
	}

	return nil
}

// waitBlank waits until the machine answers, and reports whether it waits for a configuration.
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
