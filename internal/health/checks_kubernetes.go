// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package health

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

func kubernetesAnswers(ctx context.Context, l *checkRun) *finding {
	return l.inKubernetes(ctx, func(_ context.Context, api kubernetes.Interface) *finding {
		if _, err := api.Discovery().ServerVersion(); err != nil {
			return &finding{
				reason: err,
				hint:   "the cluster's endpoint: does its address (the VIP) lead to a control plane, is port 6443 reachable from here?",
			}
		}

		return nil
	})
}

// onNodes calls ask with all Kubernetes nodes.
func (l *checkRun) onNodes(ctx context.Context, ask func(map[string]corev1.Node) *finding) *finding {
	return l.inKubernetes(ctx, func(ctx context.Context, api kubernetes.Interface) *finding {
		list, err := api.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return &finding{reason: err, hint: "kubectl get nodes"}
		}
		nodes := make(map[string]corev1.Node, len(list.Items))
		for _, n := range list.Items {
			nodes[n.Name] = n
		}

		return ask(nodes)
	})
}

func nodesRegistered(ctx context.Context, l *checkRun) *finding {
	return l.onNodes(ctx, func(nodes map[string]corev1.Node) *finding {
		for _, m := range l.cluster.ExpectedUp(l.cluster.Members) {
			if _, ok := nodes[m.Hostname]; !ok {
				return &finding{
					node: m.String(), reason: errors.New("Kubernetes has no node " + m.Hostname),
					hint: fmt.Sprintf("talosctl -n %s logs kubelet", m.Address),
				}
			}
		}

		return nil
	})
}

func nodesReady(ctx context.Context, l *checkRun) *finding {
	found := l.onNodes(ctx, func(nodes map[string]corev1.Node) *finding {
		for _, m := range l.cluster.ExpectedUp(l.cluster.Members) {
			if err := NodeReady(nodes[m.Hostname]); err != nil {
				return &finding{
					node: m.String(), reason: err,
					hint: fmt.Sprintf("kubectl describe node %s; the pod network's pods on it", m.Hostname),
				}
			}
		}

		return nil
	})
	if found == nil {
		return nil
	}
	// A node waits for its pod network, and what installs that may have failed.
	if words := l.terminationMessage(ctx); words != "" {
		found.reason = fmt.Errorf("%w\n  %s", found.reason, words)
	}

	return found
}

// NodeReady returns nil when the node's Ready condition is true.
func NodeReady(n corev1.Node) error {
	i := slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	switch {
	case i < 0:
		return errors.New("the node has no Ready condition yet")
	case n.Status.Conditions[i].Status == corev1.ConditionTrue:
		return nil
	default:
		return fmt.Errorf("the node is not ready: %s: %s", n.Status.Conditions[i].Reason, n.Status.Conditions[i].Message)
	}
}

func nodesSchedulable(ctx context.Context, l *checkRun) *finding {
	return l.onNodes(ctx, func(nodes map[string]corev1.Node) *finding {
		for _, m := range l.cluster.ExpectedUp(l.cluster.Members) {
			if nodes[m.Hostname].Spec.Unschedulable {
				return &finding{
					node: m.String(), reason: errors.New("the node is cordoned"),
					hint: "who cordoned it; when that is no longer needed: kubectl uncordon " + m.Hostname,
				}
			}
		}

		return nil
	})
}

// anyNodeTakesPods finds out whether there is one node for pods without tolerations.
func anyNodeTakesPods(ctx context.Context, l *checkRun) *finding {
	return l.onNodes(ctx, func(nodes map[string]corev1.Node) *finding {
		reason, node := errors.New("no node is registered"), ""
		for _, m := range l.cluster.Members {
			n, registered := nodes[m.Hostname]
			if !registered {
				continue
			}
			if reason = takesPods(n); reason == nil {
				return nil
			}
			node = m.String()
		}

		return &finding{node: node, reason: reason, hint: "kubectl describe nodes; is there a worker, or cluster.allowSchedulingOnControlPlanes?"}
	})
}

// takesPods returns nil when the node is ready for pods without tolerations.
func takesPods(n corev1.Node) error {
	if err := NodeReady(n); err != nil {
		return err
	}
	if n.Spec.Unschedulable {
		return errors.New("the node is cordoned")
	}
	for _, taint := range n.Spec.Taints {
		if taint.Effect != corev1.TaintEffectPreferNoSchedule {
			return fmt.Errorf("the node has the taint %s", taint.ToString())
		}
	}

	return nil
}

// SystemNamespace holds what Kubernetes itself runs.
const SystemNamespace = "kube-system"

func kubeProxy(ctx context.Context, l *checkRun) *finding {
	return l.inKubernetes(ctx, func(ctx context.Context, api kubernetes.Interface) *finding {
		const hint = "kubectl -n kube-system describe daemonset kube-proxy"
		d, err := api.AppsV1().DaemonSets(SystemNamespace).Get(ctx, "kube-proxy", metav1.GetOptions{})
		if err != nil {
			return &finding{reason: err, hint: hint}
		}
		if err := DaemonSetReady(d, len(l.cluster.Members), len(l.cluster.Down)); err != nil {
			return &finding{reason: err, hint: hint}
		}

		return nil
	})
}

// DaemonSetReady returns nil when a pod is ready on every node but those that are down.
func DaemonSetReady(d *appsv1.DaemonSet, nodes, down int) error {
	s := d.Status
	if s.ObservedGeneration < d.Generation || int(s.NumberReady) < int(s.DesiredNumberScheduled)-down ||
		int(s.DesiredNumberScheduled) < nodes {
		return fmt.Errorf("%d of %d pods of daemonset %s are ready", s.NumberReady, max(int(s.DesiredNumberScheduled), nodes), d.Name)
	}

	return nil
}

func coreDNS(ctx context.Context, l *checkRun) *finding {
	return l.inKubernetes(ctx, func(ctx context.Context, api kubernetes.Interface) *finding {
		const hint = "kubectl -n kube-system describe deployment coredns"
		d, err := api.AppsV1().Deployments(SystemNamespace).Get(ctx, "coredns", metav1.GetOptions{})
		if err != nil {
			return &finding{reason: err, hint: hint}
		}
		if err := deploymentReady(d); err != nil {
			return &finding{reason: err, hint: hint}
		}

		return nil
	})
}

func deploymentReady(d *appsv1.Deployment) error {
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	if d.Status.ObservedGeneration < d.Generation || d.Status.ReadyReplicas < want {
		return fmt.Errorf("%d of %d pods of deployment %s are ready", d.Status.ReadyReplicas, want, d.Name)
	}

	return nil
}
