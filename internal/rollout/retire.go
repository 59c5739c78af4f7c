// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/talosapi"
)

// Retire removes nodes from a cluster for good.
type Retire struct {
	// Access opens the cluster.
	Access cluster.Access
	// Cluster is what stays.
	Cluster cluster.Cluster
	// Gate lets the node go down.
	Gate *Gate
	// Drain says how a node is emptied before.
	Drain Drain
	// Poll bounds each wait.
	Poll cluster.PollOptions
	// Force names nodes that are removed although they do not answer.
	Force []string
	// Report gets a line for each step.
	Report func(string)
}

// Run retires the nodes one after the other, workers first: when everything that stays is healthy, the node is
// drained, leaves etcd, wipes its data and powers off, and its Node is deleted. Nodes that have left already
// are skipped, so that an interrupted run is repeated by running it again. A node that does not answer is
// removed only when it is named in Force.
func (r Retire) Run(ctx context.Context, leaving []cluster.Member) error {
	leaving = slices.Clone(leaving)
	slices.SortStableFunc(leaving, func(a, b cluster.Member) int {
		switch {
		case a.ControlPlane == b.ControlPlane:
			return strings.Compare(a.Name, b.Name)
		case a.ControlPlane:
			return 1
		default:
			return -1
		}
	})
	if err := r.removeDeadMembers(ctx, leaving); err != nil {
		return err
	}
	for i, m := range leaving {
		if err := r.retire(ctx, m, leaving[i+1:]); err != nil {
			return fmt.Errorf("retiring node %s: %w", m, err)
		}
	}

	return nil
}

// removeDeadMembers force-removes unreachable control planes from etcd that are named in Force, and fails for
// others, before anything else: etcd admits no member while one is down, so that a node joining in the same
// run would wait in vain. Etcd itself refuses where that would cost its quorum.
func (r Retire) removeDeadMembers(ctx context.Context, leaving []cluster.Member) error {
	talos, err := r.Access.Talos(ctx)
	if err != nil {
		return err
	}
	for _, m := range leaving {
		silent := r.checkReachable(ctx, talos, m)
		if !m.ControlPlane || silent == nil {
			continue
		}
		member, err := r.findMember(ctx, talos, m)
		if err != nil {
			return fmt.Errorf("retiring node %s: %w", m, err)
		}
		if member == nil {
			continue
		}
		if !slices.Contains(r.Force, m.Name) {
			return fmt.Errorf("retiring node %s: %w", m, unreachableError(silent))
		}
		if err := r.removeMember(ctx, talos, *member); err != nil {
			return fmt.Errorf("retiring node %s: %w", m, err)
		}
		r.Report(m.Name + " does not answer; it was taken out of etcd by force")
	}

	return nil
}

// unreachableError explains what to do about a node that does not answer.
func unreachableError(silent error) error {
	return fmt.Errorf("it does not answer: %w\n  to remove it as it is, name it in lifecycle.force", silent)
}

// checkReachable returns why the node does not answer; nil when it does.
func (r Retire) checkReachable(ctx context.Context, talos cluster.Talos, m cluster.Member) error {
	calling, cancel := context.WithTimeout(ctx, r.Poll.Call)
	defer cancel()
	_, err := talos.Version(calling, m.Address)

	return err
}

// retire retires one node while later ones are still to go.
func (r Retire) retire(ctx context.Context, m cluster.Member, later []cluster.Member) error {
	talos, err := r.Access.Talos(ctx)
	if err != nil {
		return err
	}
	api, err := r.Access.Kubernetes(ctx)
	if err != nil {
		return err
	}
	member, err := r.findMember(ctx, talos, m)
	if err != nil {
		return err
	}
	if member == nil {
		known, err := isRegistered(ctx, api, m)
		if err != nil {
			return err
		}
		if !known {
			r.Report(m.Name + " has left already")

			return nil
		}
	}

	// All others must be well. Whether this one is still a member is open: an earlier run may have asked
	// it to leave, and it goes on by itself.
	checker := HealthChecker{Access: r.Access, Cluster: r.Cluster, Poll: r.Poll, Report: r.Report}
	checker.Cluster.Members = append(slices.Clone(r.Cluster.Members), later...)
	before := checker
	before.Cluster.Leaving = true
	if err := r.Gate.Enter(ctx, m, before.Before(m)); err != nil {
		return err
	}
	if err := r.leave(ctx, talos, api, m, member); err != nil {
		r.Gate.Fail(m, err)

		return err
	}

	return r.Gate.Leave(ctx, m, checker.After())
}

// leave removes the node, which leaves by itself where it answers. A node that an earlier run asked to leave
// may be on its way, or gone.
func (r Retire) leave(
	ctx context.Context, talos cluster.Talos, api kubernetes.Interface, m cluster.Member, member *cluster.EtcdMember,
) error {
	asked, err := isLeaving(ctx, api, m)
	if err != nil {
		return err
	}
	silent := r.checkReachable(ctx, talos, m)
	forced := slices.Contains(r.Force, m.Name)
	switch {
	case silent == nil:
		if err := r.requestLeave(ctx, talos, api, m); err != nil && !asked {
			return err
		}
	case forced:
		r.Report(m.Name + " does not answer; it is removed by force")
	case asked, m.ControlPlane && member == nil:
		r.Report(m.Name + " was asked to leave by an earlier run")
	default:
		return unreachableError(silent)
	}
	if err := r.waitRemoved(ctx, talos, m); err != nil {
		return err
	}
	if err := api.CoreV1().Nodes().Delete(ctx, m.Hostname, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing it from Kubernetes: %w", err)
	}
	r.Report(m.Name + " has left")

	return nil
}

// requestLeave drains the node and asks it to leave, and marks it: from then on it may be silent.
func (r Retire) requestLeave(ctx context.Context, talos cluster.Talos, api kubernetes.Interface, m cluster.Member) error {
	drain := r.Drain
	drain.Removes = true
	if err := drain.Empty(ctx, api, m.Hostname, r.Report); err != nil {
		return errors.Join(err, Uncordon(context.WithoutCancel(ctx), api, m.Hostname))
	}
	if err := markLeaving(ctx, api, m, true); err != nil {
		return err
	}
	r.Report(m.Name + " leaves the cluster")
	if err := talos.Retire(ctx, m.Address); err != nil {
		return errors.Join(err, markLeaving(context.WithoutCancel(ctx), api, m, false))
	}

	return nil
}

// findMember returns the node's etcd member as the first control plane that answers sees it; nil when it has
// none.
func (r Retire) findMember(ctx context.Context, talos cluster.Talos, m cluster.Member) (*cluster.EtcdMember, error) {
	if !m.ControlPlane {
		return nil, nil
	}
	var errs []error
	for _, plane := range r.Cluster.ControlPlanes() {
		calling, cancel := context.WithTimeout(ctx, r.Poll.Call)
		members, err := talos.EtcdMembers(calling, plane.Address)
		cancel()
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", plane, err))

			continue
		}
		if i := slices.IndexFunc(members, func(e cluster.EtcdMember) bool { return e.Is(m) }); i >= 0 {
			return &members[i], nil
		}

		return nil, nil
	}

	return nil, fmt.Errorf("no control plane says who is in etcd: %w", errors.Join(errs...))
}

// removeMember removes an unreachable member through the first control plane that can.
func (r Retire) removeMember(ctx context.Context, talos cluster.Talos, member cluster.EtcdMember) error {
	var errs []error
	for _, plane := range r.Cluster.ControlPlanes() {
		err := talos.RemoveEtcdMember(ctx, plane.Address, member.ID)
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", plane, err))
	}

	return errors.Join(errs...)
}

// waitRemoved waits until etcd no longer lists the node and the node no longer answers as a member.
func (r Retire) waitRemoved(ctx context.Context, talos cluster.Talos, m cluster.Member) error {
	waiting, cancel := context.WithTimeout(ctx, r.Poll.Timeout)
	defer cancel()

	last := errors.New("etcd still has it")
	err := cluster.Poll(waiting, r.Poll.Interval, func(ctx context.Context) (bool, error) {
		member, err := r.findMember(ctx, talos, m)
		if err != nil {
			cluster.Remember(ctx, &last, err)

			return false, nil
		}
		if member != nil {
			cluster.Remember(ctx, &last, errors.New("etcd still has it"))

			return false, nil
		}
		calling, cancel := context.WithTimeout(ctx, r.Poll.Call)
		defer cancel()
		if _, err := talos.Version(calling, m.Address); err == nil || ctx.Err() != nil {
			cluster.Remember(ctx, &last, errors.New("it still runs"))

			return false, nil
		}

		return true, nil
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("it has not left after %s: %w\n  look at: the console of %s", r.Poll.Timeout, last, m.Name)
	}

	return err
}

// isRegistered reports whether Kubernetes has the node.
func isRegistered(ctx context.Context, api kubernetes.Interface, m cluster.Member) (bool, error) {
	node, err := nodeOf(ctx, api, m)

	return node != nil, err
}

// nodeOf returns the member's Node; nil where Kubernetes has none.
func nodeOf(ctx context.Context, api kubernetes.Interface, m cluster.Member) (*corev1.Node, error) {
	node, err := api.CoreV1().Nodes().Get(talosapi.WithRetry(ctx), m.Hostname, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("asking Kubernetes for the node: %w", err)
	default:
		return node, nil
	}
}
