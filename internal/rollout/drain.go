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
	// Interval is the longest pause between two checks.
	Interval time.Duration
	// Removes says that the node does not come back: a pod without a controller is lost with it, and only Force
	// evicts it. A node that comes back restarts such a pod, so that it stays.
	Removes bool
}

// Empty cordons a node and evicts its pods, except those of daemon sets and static ones, within their disruption
// budgets. A node that Kubernetes does not know is empty, and one whose kubelet is silent cannot be emptied. When
// the time is up the error names the pods that are left; with Force they stay, and are reported.
func (d Drain) Empty(ctx context.Context, api kubernetes.Interface, node string, report func(string)) error {
	n, err := api.CoreV1().Nodes().Get(talosapi.WithRetry(ctx), node, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("draining node %s: asking Kubernetes for it: %w", node, err)
	}
	alone, err := d.withoutController(ctx, api, node)
	if err != nil {
		return fmt.Errorf("draining node %s: %w", node, err)
	}
	if d.Removes && len(alone) > 0 && !d.Force {
		return fmt.Errorf("draining node %s: no controller recreates these pods, which would be lost with the node: %s\n"+
			"  delete them, or evict them too with lifecycle.drainPolicy force", node, strings.Join(alone, ", "))
	}
	switch err := cordon(ctx, api, node, true); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("cordoning node %s: %w", node, err)
	}
	if kubeletSilent(*n) {
		report(fmt.Sprintf("draining %s: its kubelet does not answer, so its pods are left to Kubernetes", node))

		return nil
	}
	if !d.Removes && len(alone) > 0 {
		report(fmt.Sprintf("draining %s: %s stay, since no controller would recreate them; they restart with the node",
			node, strings.Join(alone, ", ")))
	}

	return d.evictAll(ctx, api, node, report)
}

// evictAll evicts pods until none is left that has to go.
func (d Drain) evictAll(ctx context.Context, api kubernetes.Interface, node string, report func(string)) error {
	draining, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	var left []string
	said := ""
	err := cluster.Poll(draining, d.Interval, func(ctx context.Context) (bool, error) {
		var err error
		left, err = d.evictPods(ctx, api, node)
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

// kubeletSilent reports whether Kubernetes has lost contact to the node's kubelet: nobody would end its pods.
func kubeletSilent(n corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown
	})
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

	return err
}

// podsOf returns the pods of a node that do not belong to the node itself.
func podsOf(ctx context.Context, api kubernetes.Interface, node string) ([]corev1.Pod, error) {
	pods, err := api.CoreV1().Pods("").List(talosapi.WithRetry(ctx), metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	})
	if err != nil {
		return nil, fmt.Errorf("listing its pods: %w", err)
	}

	return slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.Spec.NodeName != node || staysOnNode(p) }), nil
}

// withoutController returns the names of the node's pods that nobody would recreate.
func (d Drain) withoutController(ctx context.Context, api kubernetes.Interface, node string) ([]string, error) {
	pods, err := podsOf(ctx, api, node)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range pods {
		if metav1.GetControllerOf(&p) == nil {
			names = append(names, p.Namespace+"/"+p.Name)
		}
	}
	slices.Sort(names)

	return names, nil
}

// evictPods requests the eviction of every pod that has to go, and returns those that are still there.
func (d Drain) evictPods(ctx context.Context, api kubernetes.Interface, node string) ([]string, error) {
	pods, err := podsOf(ctx, api, node)
	if err != nil {
		return nil, err
	}
	var left []string
	for _, p := range pods {
		if !d.Removes && metav1.GetControllerOf(&p) == nil {
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
