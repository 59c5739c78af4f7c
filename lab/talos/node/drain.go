// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/talos-proxmox/talos-proxmox/lab/talos/controlplane"
)

const (
	cordonTimeout = time.Minute
	drainTimeout  = 5 * time.Minute
	evictRetry    = 5 * time.Second
	evictGrace    = int64(60)

	// cordonedByTalos marks a node that Talos cordoned and will uncordon itself.
	cordonedByTalos = "talos.dev/cordoned"
)

// kubernetesOf returns what runs the Kubernetes of the node's cluster, nil where its etcd has no quorum.
func (n *Node) kubernetesOf() *controlplane.Runner {
	g, _ := n.Group()
	if g == nil && n.Config() != nil && n.Config().Cluster() != nil {
		g, _ = n.Nodes.servingGroup(n)
	}
	if g == nil || !g.Quorum() {
		return nil
	}

	return g.Kube
}

// kubernetesClient reaches the API server of the node's cluster, nil when there is none.
func (n *Node) kubernetesClient() kubernetes.Interface {
	runner := n.kubernetesOf()
	if runner == nil {
		return nil
	}

	return runner.Client()
}

// drain cordons the node and evicts its pods. What cannot be evicted in time stops with the node: that is a warning.
// Not to be cordoned, or not to know its pods, is an error.
func (n *Node) drain(ctx context.Context, actor string) error {
	if !n.joined() {
		return nil
	}

	end := n.VM.Trace.Begin("node.drain", n.Object(), n.Attrs())
	err := n.Events.Phase("drain", actor, func() error {
		client, err := n.awaitCordoned(ctx)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, max(n.VM.Clock.Scale(drainTimeout), time.Second))
		defer cancel()

		return n.evictAll(ctx, client)
	})
	end(err)

	return err
}

// joined reports whether the kubelet was ever accepted by its cluster.
func (n *Node) joined() bool {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.registered
}

// awaitCordoned waits until the node is cordoned.
func (n *Node) awaitCordoned(ctx context.Context) (kubernetes.Interface, error) {
	ctx, cancel := context.WithTimeout(ctx, max(n.VM.Clock.Scale(cordonTimeout), time.Second))
	defer cancel()
	for {
		if client := n.kubernetesClient(); client != nil && n.cordon(ctx, client, true) == nil {
			return client, nil
		}
		if n.VM.Clock.Sleep(ctx, evictRetry) != nil {
			return nil, context.DeadlineExceeded
		}
	}
}

func (n *Node) cordon(ctx context.Context, client kubernetes.Interface, on bool) error {
	have, err := client.CoreV1().Nodes().Get(ctx, n.Hostname(), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading node %s: %w", n.Hostname(), err)
	}
	_, ours := have.Annotations[cordonedByTalos]
	if on && have.Spec.Unschedulable || !on && !ours {
		return nil
	}

	var mark any
	if on {
		mark = "true"
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{cordonedByTalos: mark}},
		"spec":     map[string]any{"unschedulable": on},
	})
	if err != nil {
		return fmt.Errorf("cordoning node %s: %w", n.Hostname(), err)
	}
	_, err = client.CoreV1().Nodes().Patch(ctx, n.Hostname(), types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("cordoning node %s: %w", n.Hostname(), err)
	}

	return nil
}

// uncordon undoes what a drain before a reboot did; false where it has to be tried again.
func (n *Node) uncordon(ctx context.Context) bool {
	client := n.kubernetesClient()
	if client == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()

	return n.cordon(ctx, client, false) == nil
}

func (n *Node) evictAll(ctx context.Context, client kubernetes.Interface) error {
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + n.Hostname()})
	if err != nil {
		return fmt.Errorf("cannot get pods for node %s: %w", n.Hostname(), err)
	}

	var wg sync.WaitGroup
	for _, pod := range pods.Items {
		owner := metav1.GetControllerOf(&pod)
		_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
		if mirror || owner == nil || owner.Kind == "DaemonSet" {
			continue
		}
		wg.Go(func() {
			if err := n.evict(ctx, client, &pod); err != nil {
				n.Console("failed to evict pod", "pod", pod.Namespace+"/"+pod.Name, "error", err)
			}
		})
	}
	wg.Wait()

	return nil
}

// evict asks until the pod may go, and waits until it is gone.
func (n *Node) evict(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) error {
	grace := evictGrace
	eviction := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: &grace},
	}
	for {
		err := client.PolicyV1().Evictions(pod.Namespace).Evict(ctx, eviction)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			break
		}
		if !apierrors.IsTooManyRequests(err) {
			return fmt.Errorf("evicting: %w", err)
		}
		if err := n.VM.Clock.Sleep(ctx, evictRetry); err != nil {
			return fmt.Errorf("evicting: %w", err)
		}
	}

	for {
		now, err := client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && now.UID != pod.UID {
			return nil
		}
		if err := n.VM.Clock.Sleep(ctx, evictRetry/5); err != nil {
			return fmt.Errorf("waiting for its end: %w", err)
		}
	}
}
