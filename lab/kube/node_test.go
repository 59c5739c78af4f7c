// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kube_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talos-proxmox/talos-proxmox/lab/kube"
)

func inside(cidr, ip string) bool {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(ip)

	return err == nil && prefix.Contains(addr)
}

func controlPlane(name, address string) kube.NodeSpec {
	s := spec(name, address)
	s.ControlPlane = true
	s.Taints = []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}}
	s.StaticPods = []kube.StaticPod{{Name: "kube-apiserver", Image: "registry.k8s.io/kube-apiserver:v1.35.0"}}

	return s
}

func TestNodeLife(t *testing.T) {
	t.Parallel()

	conf := config(t)
	c := start(t, conf)
	c.cni(t)
	first := controlPlane("cp-1", "10.0.0.11")
	first.Labels = map[string]string{"zone": "a", "old": "yes"}
	replaced := c.run(t.Context(), first)
	c.awaitNode(t, "cp-1", corev1.ConditionTrue)
	c.awaitMirror(t, "kube-apiserver-cp-1", "registry.k8s.io/kube-apiserver:v1.35.0")

	node := c.get(t, "cp-1")
	require.Equal(t, "a", node.Labels["zone"])
	require.Contains(t, node.Labels, "node-role.kubernetes.io/control-plane")
	require.Equal(t, "cp-1", node.Labels[corev1.LabelHostname])
	require.Equal(t, "v1.35.0", node.Status.NodeInfo.KubeletVersion)
	require.True(t, hasTaint(node, "node-role.kubernetes.io/control-plane"))
	boot := node.Status.NodeInfo.BootID

	t.Log("a new spec takes over and changes only what the old one owned")
	_, err := c.CoreV1().Nodes().Patch(t.Context(), "cp-1", "application/merge-patch+json",
		[]byte(`{"metadata":{"labels":{"mine":"kept"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	second := controlPlane("cp-1", "10.0.0.11")
	second.Labels = map[string]string{"zone": "b"}
	second.Taints = nil
	second.KubeletVersion = "v1.35.4"
	second.StaticPods[0].Image = "registry.k8s.io/kube-apiserver:v1.35.4"
	ctx, cancel := context.WithCancel(t.Context())
	ended := c.run(ctx, second)
	eventually(t, 15*time.Second, func(context.Context) string {
		if node = c.get(t, "cp-1"); node.Labels["zone"] == "b" && node.Status.NodeInfo.KubeletVersion == "v1.35.4" {
			return ""
		}

		return "the node still shows the old spec"
	})
	require.NotContains(t, node.Labels, "old")
	require.Equal(t, "kept", node.Labels["mine"])
	require.False(t, hasTaint(node, "node-role.kubernetes.io/control-plane"))
	require.Equal(t, boot, node.Status.NodeInfo.BootID, "taking over is no reboot")
	c.awaitMirror(t, "kube-apiserver-cp-1", "registry.k8s.io/kube-apiserver:v1.35.4")
	c.awaitEndpoints(t, "10.0.0.11")
	require.ErrorIs(t, <-replaced, kube.ErrReplaced)

	t.Log("a silent node is found by the node lifecycle controller")
	cancel()
	require.NoError(t, <-ended)
	c.awaitNode(t, "cp-1", corev1.ConditionUnknown)
	c.awaitEndpoints(t)

	bootsAndRestarts(t, c, conf, second)
}

// bootsAndRestarts goes on with a node that ran and is silent now.
func bootsAndRestarts(t *testing.T, c *cluster, conf kube.Config, second kube.NodeSpec) {
	t.Helper()

	t.Log("a reboot starts containers anew")
	second.BootID = "boot-2"
	c.run(t.Context(), second)
	c.awaitNode(t, "cp-1", corev1.ConditionTrue)
	require.Equal(t, "boot-2", c.get(t, "cp-1").Status.NodeInfo.BootID)
	c.awaitRestarts(t, 1)

	t.Log("a restart of the control plane keeps the data, and one of the kubelet its containers")
	require.NoError(t, c.Stop())
	require.ErrorIs(t, c.Cluster.Node(t.Context(), second), kube.ErrStopped)
	c = start(t, conf)
	require.Equal(t, "b", c.get(t, "cp-1").Labels["zone"])
	second.Labels = map[string]string{"zone": "c"}
	c.run(t.Context(), second)
	eventually(t, 15*time.Second, func(context.Context) string {
		return differ(c.get(t, "cp-1").Labels["zone"], "c")
	})
	c.awaitNode(t, "cp-1", corev1.ConditionTrue)
	c.deployment(t, "default", "web", "example.com/web:1", 1)
	c.awaitAvailable(t, "default", "web", 1)
	c.awaitRestarts(t, 1)
}

// hasTaint leaves aside the taints that the node lifecycle controller gives and takes.
func hasTaint(node *corev1.Node, key string) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == key })
}

func differ(have, want string) string {
	if have == want {
		return ""
	}

	return have + " is not " + want
}

// awaitRestarts waits until the CNI's pod is ready after so many restarts.
func (c *cluster) awaitRestarts(t *testing.T, want int32) {
	t.Helper()

	eventually(t, 15*time.Second, func(ctx context.Context) string {
		pods := c.pods(ctx, "kube-system", "cni")
		if len(pods) != 1 || len(pods[0].Status.ContainerStatuses) == 0 {
			return "the CNI has no running pod"
		}
		status := pods[0].Status.ContainerStatuses[0]
		if status.RestartCount != want || !status.Ready {
			return fmt.Sprintf("the CNI pod: %d restarts, ready %t", status.RestartCount, status.Ready)
		}

		return ""
	})
}

func (c *cluster) get(t *testing.T, name string) *corev1.Node {
	t.Helper()

	node, err := c.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)

	return node
}

func (c *cluster) awaitMirror(t *testing.T, name, image string) {
	t.Helper()

	eventually(t, 20*time.Second, func(ctx context.Context) string {
		pod, err := c.CoreV1().Pods("kube-system").Get(ctx, name, metav1.GetOptions{})
		switch {
		case err != nil:
			return err.Error()
		case pod.Spec.Containers[0].Image != image:
			return name + " has " + pod.Spec.Containers[0].Image
		case pod.Status.Phase != corev1.PodRunning:
			return name + " is " + string(pod.Status.Phase)
		}
		require.Equal(t, "kube-apiserver", pod.Labels["k8s-app"])
		require.Equal(t, "control-plane", pod.Labels["tier"])

		return ""
	})
}

// awaitEndpoints waits until the kubernetes Service leads to these control planes.
func (c *cluster) awaitEndpoints(t *testing.T, want ...string) {
	t.Helper()

	eventually(t, 15*time.Second, func(ctx context.Context) string {
		slice, err := c.DiscoveryV1().EndpointSlices("default").Get(ctx, "kubernetes", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		var have []string
		for _, endpoint := range slice.Endpoints {
			have = append(have, endpoint.Addresses...)
		}
		if !slices.Equal(have, want) {
			return fmt.Sprintf("the kubernetes Service leads to %v", have)
		}

		return ""
	})
}
