// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package kubelets watches what kubelets do, in scenes that play alike with genuine ones and with the lab's.
package kubelets

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Site gives a scene a cluster of one control plane and one worker, which have no network for pods at first.
type Site struct {
	Client          kubernetes.Interface
	Control, Worker string
	// Patience bounds how long something may take.
	Patience time.Duration
	// Restart restarts the worker's kubelet.
	Restart func(context.Context) error
}

// Scene describes what is watched.
type Scene struct {
	Name  string
	Watch func(context.Context) (any, error)
}

// Scenes returns the scenes in the order in which they play.
func (s Site) Scenes() []Scene {
	node := func(name string) func(context.Context) (any, error) {
		return func(ctx context.Context) (any, error) { return s.awaitNode(ctx, name, corev1.ConditionFalse) }
	}

	return []Scene{
		{"the node of a control plane", node(s.Control)}, {"the node of a worker", node(s.Worker)}, {"leases", s.leases},
		{"requests for certificates", s.requests}, {"mirror pods", s.mirrors}, {"a network for pods", s.network}, {"a pod", s.pod},
		{"an eviction that a budget refuses", s.refusedEviction}, {"an eviction", s.eviction},
		{"a container that does not end in time", s.killed}, {"a pod that is done", s.done},
		{"a ConfigMap that is not there", s.missing}, {"a mirror pod that is deleted", s.deletedMirror}, {"a cordon", s.cordon},
		{"a kubelet that restarts", s.restart},
	}
}

// until asks again and again until something holds.
func (s Site) until(ctx context.Context, what string, holds func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	for {
		err := holds(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func condition(node *corev1.Node, kind corev1.NodeConditionType) corev1.NodeCondition {
	for _, c := range node.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}

	return corev1.NodeCondition{}
}

// awaitNode waits until a node is ready, or not, and has what Talos adds.
func (s Site) awaitNode(ctx context.Context, name string, ready corev1.ConditionStatus) (*corev1.Node, error) {
	var node *corev1.Node
	err := s.until(ctx, "node "+name, func(ctx context.Context) (err error) {
		if node, err = s.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		tainted := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady })
		if c := condition(node, corev1.NodeReady); c.Status != ready || tainted == (ready == corev1.ConditionTrue) {
			return fmt.Errorf("ready is %q: %s, taints %v", c.Status, c.Message, node.Spec.Taints)
		}
		if name == s.Control && node.Annotations["talos.dev/owned-labels"] == "" || node.Spec.PodCIDR == "" {
			return fmt.Errorf("annotations are %v, its pods' network is %q", node.Annotations, node.Spec.PodCIDR)
		}

		return nil
	})

	return node, err
}

func (s Site) leases(ctx context.Context) (any, error) {
	var list *coordinationv1.LeaseList
	err := s.until(ctx, "leases", func(ctx context.Context) (err error) {
		list, err = s.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) < 2 {
			err = fmt.Errorf("there are only %d", len(list.Items))
		}

		return err
	})
	if err != nil {
		return nil, err
	}

	return list.Items, nil
}

func (s Site) requests(ctx context.Context) (any, error) {
	var list *certificatesv1.CertificateSigningRequestList
	err := s.until(ctx, "certificates", func(ctx context.Context) (err error) {
		if list, err = s.Client.CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{}); err != nil {
			return err
		}
		issued := 0
		for _, r := range list.Items {
			if len(r.Status.Certificate) > 0 {
				issued++
			}
		}
		if issued < 2 {
			err = fmt.Errorf("%d of %d are issued", issued, len(list.Items))
		}

		return err
	})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		r := &list.Items[i]
		r.Spec.Request, r.Status.Certificate = []byte("<request>"), []byte("<certificate>")
		r.Name = "<name>"
		r.Spec.Extra = nil // the token's ID, in newer versions
	}

	return list.Items, nil
}

func (s Site) mirrors(ctx context.Context) (any, error) {
	pods := map[string]*corev1.Pod{}
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		err := s.until(ctx, "mirror pod of "+name, func(ctx context.Context) error {
			pod, err := s.Client.CoreV1().Pods(metav1.NamespaceSystem).Get(ctx, name+"-"+s.Control, metav1.GetOptions{})
			if err != nil {
				return err
			}
			pods[name] = pod

			return isReady(pod)
		})
		if err != nil {
			return nil, err
		}
		for i := range pods[name].Status.ContainerStatuses { // the order of their start decides whether they start twice
			c := &pods[name].Status.ContainerStatuses[i]
			c.RestartCount, c.LastTerminationState = 0, corev1.ContainerState{}
		}
	}

	return pods, nil
}

func isReady(pod *corev1.Pod) error {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return nil
		}
	}

	return fmt.Errorf("pod %s is %s: %v %v", pod.Name, pod.Status.Phase, pod.Status.Conditions, pod.Status.ContainerStatuses)
}

// seen tells how a pod looks, for sequences.
func seen(pod *corev1.Pod) string {
	text := []string{string(pod.Status.Phase)}
	if pod.DeletionGracePeriodSeconds != nil {
		text = append(text, fmt.Sprintf("deleted with %d s", *pod.DeletionGracePeriodSeconds))
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodReady, corev1.DisruptionTarget} {
		for _, c := range pod.Status.Conditions {
			if c.Type == kind {
				text = append(text, strings.TrimSpace(fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason)))
			}
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		switch {
		case c.State.Running != nil:
			text = append(text, "running")
		case c.State.Waiting != nil:
			text = append(text, "waiting: "+c.State.Waiting.Reason)
		case c.State.Terminated != nil:
			text = append(text, fmt.Sprintf("terminated: %d %s", c.State.Terminated.ExitCode, c.State.Terminated.Reason))
		}
	}

	return strings.Join(text, ", ")
}

// life watches a pod until it is gone, and returns how it looked, in order. What comes between two looks is no matter:
// the first and the last are what callers can rely on.
func (s Site) life(ctx context.Context, name string, do func(context.Context) error) ([]string, error) {
	watch, err := s.Client.CoreV1().Pods(metav1.NamespaceDefault).Watch(ctx, metav1.SingleObject(metav1.ObjectMeta{Name: name}))
	if err != nil {
		return nil, err
	}
	defer watch.Stop()
	if err := do(ctx); err != nil {
		return nil, err
	}
	var all []string
	timeout := time.After(s.Patience)
	for {
		select {
		case e, ok := <-watch.ResultChan():
			pod, isPod := e.Object.(*corev1.Pod)
			if !ok || !isPod {
				return nil, fmt.Errorf("watching pod %s: it ended", name)
			}
			if e.Type == "DELETED" {
				return append(all, "gone"), nil
			}
			if now := seen(pod); pod.DeletionTimestamp != nil && (len(all) == 0 || all[len(all)-1] != now) {
				all = append(all, now)
			}
		case <-timeout:
			return nil, fmt.Errorf("pod %s is still there: %v", name, all)
		}
	}
}

func (s Site) evict(ctx context.Context, pod string) error {
	return s.Client.CoreV1().Pods(metav1.NamespaceDefault).EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod}})
}
