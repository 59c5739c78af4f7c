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

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/talosapi"
)

// Drain configures how a node is drained.
type Drain struct {
	// Timeout bounds it.
	Timeout time.Duration
	// Force goes on when the time is up instead of failing.
	Force bool
	// Interval is the longest pause between two looks.
	Interval time.Duration
}

// Empty cordons a node and evicts its pods, except those of daemon sets and static ones, within their
// disruption budgets. A node that Kubernetes does not know is empty. When the time is up the error names the
// pods that are left; with Force they stay, and are reported.
func (d Drain) Empty(ctx context.Context, api kubernetes.Interface, node string, report func(string)) error {
	switch err := cordon(ctx, api, node, true); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("cordoning node %s: %w", node, err)
	}

	draining, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	var left []string
	said := ""
	err := cluster.Poll(draining, d.Interval, func(ctx context.Context) (bool, error) {
		var err error
		left, err = evictPods(ctx, api, node)
		if err != nil && ctx.Err() == nil {
			return false, err
		}
		if line := strings.Join(left, ", "); line != said && line != "" {
			said = line
			report(fmt.Sprintf("draining %s: waiting for %s", node, line))
		}

		return err == nil && len(left) == 0, nil
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("draining node %s: %w", node, ctx.Err())
	case !errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("draining node %s: %w", node, err)
	case d.Force:
		report(fmt.Sprintf("draining %s: going on after %s with %s left", node, d.Timeout, strings.Join(left, ", ")))

		return nil
	default:
		return fmt.Errorf("draining node %s: after %s these pods are left: %s\n"+
			"  look at: their disruption budgets (kubectl get pdb -A); lifecycle.drainPolicy force goes on without them",
			node, d.Timeout, strings.Join(left, ", "))
	}
}

// Uncordon makes a node schedulable again. A node that Kubernetes does not know needs nothing.
func Uncordon(ctx context.Context, api kubernetes.Interface, node string) error {
	if err := cordon(ctx, api, node, false); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("uncordoning node %s: %w", node, err)
	}

	return nil
}

func cordon(ctx context.Context, api kubernetes.Interface, node string, on bool) error {
	mark := "null"
	if on {
		mark = `"true"`
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}},"spec":{"unschedulable":%t}}`, cluster.DrainedAnnotation, mark, on)
	_, err := api.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{})

	return err //nolint:wrapcheck // the callers name the node
}

// evictPods requests the eviction of every pod that has to go, and returns those that are still there.
func evictPods(ctx context.Context, api kubernetes.Interface, node string) ([]string, error) {
	pods, err := api.CoreV1().Pods("").List(talosapi.WithRetry(ctx), metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	})
	if err != nil {
		return nil, fmt.Errorf("listing its pods: %w", err)
	}
	var left []string
	for _, p := range pods.Items {
		if p.Spec.NodeName != node || staysOnNode(p) {
			continue
		}
		left = append(left, p.Namespace+"/"+p.Name)
		if p.DeletionTimestamp != nil {
			continue
		}
		err := api.PolicyV1().Evictions(p.Namespace).Evict(ctx, &policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
		})
		// A budget says no for now; a pod that is gone needs nothing.
		if err != nil && !apierrors.IsTooManyRequests(err) && !apierrors.IsNotFound(err) {
			return left, fmt.Errorf("evicting pod %s/%s: %w", p.Namespace, p.Name, err)
		}
	}
	slices.Sort(left)

	return left, nil
}

// staysOnNode reports whether a pod is not evicted: static, of a daemon set, or finished.
func staysOnNode(p corev1.Pod) bool {
	if _, static := p.Annotations[corev1.MirrorPodAnnotationKey]; static {
		return true
	}
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return true
	}

	return slices.ContainsFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Kind == "DaemonSet" || o.Kind == "Node"
	})
}
