// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"fmt"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/client"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func skipDenied(err error) error {
	if status.Code(err) == codes.PermissionDenied {
		return errSkipped
	}

	return err
}

func componentChecks() []check {
	return []check{
		{what: "all k8s nodes to report", holds: nodesReport},
		{what: "all control plane components to be ready", holds: controlPlaneReady},
	}
}

func clusterChecks() []check {
	return []check{
		{what: "all k8s nodes to report ready", timeout: defaultTimeout, holds: eachNode(nodeReady)},
		{what: "kube-proxy to report ready", holds: daemonsReady("kube-proxy")},
		{what: "coredns to report ready", holds: podsReady("kube-dns")},
		{what: "all k8s nodes to report schedulable", holds: eachNode(nodeSchedulable)},
	}
}

// kubernetesClient uses the admin kubeconfig that a control plane hands out.
func (h *checkup) kubernetesClient(ctx context.Context) (*kubernetes.Clientset, error) {
	raw, err := h.client.Kubeconfig(client.WithNode(ctx, h.controlPlane[0]))
	if err != nil {
		return nil, err
	}

	cfg, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		return nil, fmt.Errorf("failed to parse kubeconfig")
	}

	return kubernetes.NewForConfig(cfg)
}

func (h *checkup) nodes(ctx context.Context) ([]corev1.Node, error) {
	k, err := h.kubernetesClient(ctx)
	if err != nil {
		return nil, err
	}

	list, err := k.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}

	return list.Items, nil
}

// nodesReport: Kubernetes has exactly the nodes that were named, by address.
func nodesReport(ctx context.Context, h *checkup) error {
	nodes, err := h.nodes(ctx)
	if err != nil {
		return err
	}

	var have []string
	for _, n := range nodes {
		matched := ""
		for _, a := range n.Status.Addresses {
			if (a.Type == corev1.NodeInternalIP || a.Type == corev1.NodeExternalIP) &&
				slices.Contains(h.all(), a.Address) {
				matched = a.Address
			}
		}
		if matched == "" {
			return fmt.Errorf("unexpected nodes with IPs [%s]", n.Name)
		}
		have = append(have, matched)
	}

	for _, want := range h.all() {
		if !slices.Contains(have, want) {
			return fmt.Errorf("can't find expected node with IPs [%q]", want)
		}
	}

	return nil
}

func controlPlaneReady(ctx context.Context, h *checkup) error {
	for _, app := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		if err := podsOf(ctx, h, app, len(h.controlPlane)); err != nil {
			return err
		}
	}

	return nil
}

func podsReady(app string) func(context.Context, *checkup) error {
	return func(ctx context.Context, h *checkup) error { return podsOf(ctx, h, app, 0) }
}

// podsOf: the pods of an app are ready; count 0 takes any number, none included.
func podsOf(ctx context.Context, h *checkup, app string, count int) error {
	k, err := h.kubernetesClient(ctx)
	if err != nil {
		return err
	}

	pods, err := k.CoreV1().Pods("kube-system").List(ctx, metav1.ListOptions{LabelSelector: "k8s-app=" + app})
	if err != nil {
		return err
	}
	if count > 0 && len(pods.Items) != count {
		return fmt.Errorf("expected number of pods for %s to be %d, got %d", app, count, len(pods.Items))
	}

	for _, p := range pods.Items {
		ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
		if !ready {
			return fmt.Errorf("some pods are not ready: [%s]", p.Name)
		}
	}

	return nil
}

func daemonsReady(app string) func(context.Context, *checkup) error {
	return func(ctx context.Context, h *checkup) error {
		k, err := h.kubernetesClient(ctx)
		if err != nil {
			return err
		}

		sets, err := k.AppsV1().DaemonSets("kube-system").List(ctx, metav1.ListOptions{LabelSelector: "k8s-app=" + app})
		if err != nil {
			return err
		}
		for _, d := range sets.Items {
			if d.Status.NumberReady < d.Status.DesiredNumberScheduled || d.Status.DesiredNumberScheduled == 0 {
				return fmt.Errorf("DaemonSet %s is not ready: %d of %d", d.Name,
					d.Status.NumberReady, d.Status.DesiredNumberScheduled)
			}
		}

		return nil
	}
}

func eachNode(holds func(corev1.Node) error) func(context.Context, *checkup) error {
	return func(ctx context.Context, h *checkup) error {
		nodes, err := h.nodes(ctx)
		if err != nil {
			return err
		}
		for _, n := range nodes {
			if err := holds(n); err != nil {
				return err
			}
		}

		return nil
	}
}

func nodeReady(n corev1.Node) error {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return nil
		}
	}

	return fmt.Errorf("some nodes are not ready: [%s]", n.Name)
}

func nodeSchedulable(n corev1.Node) error {
	if n.Spec.Unschedulable {
		return fmt.Errorf("some nodes are not schedulable: [%s]", n.Name)
	}

	return nil
}
