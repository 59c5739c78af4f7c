// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kube_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func selector(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}

func template(app, image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: app, Image: image}}},
	}
}

// cni creates a DaemonSet that sets up the network as flannel and Cilium do.
func (c *cluster) cni(t *testing.T) {
	t.Helper()

	pod := template("cni", "example.com/cni:1")
	pod.Spec.HostNetwork = true
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	pod.Spec.InitContainers = []corev1.Container{{Name: "install", Image: "example.com/cni:1"}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "cni", VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: "/etc/cni/net.d"},
	}}}
	_, err := c.AppsV1().DaemonSets("kube-system").Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "cni"},
		Spec:       appsv1.DaemonSetSpec{Selector: selector("cni"), Template: pod},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func (c *cluster) deployment(t *testing.T, namespace, name, image string, replicas int32) {
	t.Helper()

	_, err := c.AppsV1().Deployments(namespace).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: selector(name), Template: template(name, image),
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// pods returns the pods of an app.
func (c *cluster) pods(ctx context.Context, namespace, app string) []corev1.Pod {
	list, err := c.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		return nil
	}

	return list.Items
}

func (c *cluster) awaitAvailable(t *testing.T, namespace, name string, replicas int32) {
	t.Helper()

	eventually(t, 30*time.Second, func(ctx context.Context) string {
		d, err := c.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if d.Status.AvailableReplicas == replicas {
			return ""
		}
		faults := fmt.Sprintf("deployment %s has %d of %d available", name, d.Status.AvailableReplicas, replicas)
		for _, pod := range c.pods(ctx, namespace, name) {
			faults += fmt.Sprintf("; %s %s %+v", pod.Name, pod.Status.Phase, pod.Status.Conditions)
		}

		return faults
	})
}

// TestWorkloads runs in one cluster, for starting one takes longer than each check.
func TestWorkloads(t *testing.T) {
	t.Parallel()

	conf := config(t)
	conf.Images = func(ref string) error {
		if ref == "example.com/gone:1" {
			return fmt.Errorf("%s: not found", ref)
		}

		return nil
	}
	c := start(t, conf)
	c.run(t.Context(), spec("worker-1", "10.0.0.21"))
	c.run(t.Context(), spec("worker-2", "10.0.0.22"))

	c.awaitNode(t, "worker-1", corev1.ConditionFalse)
	_, message := c.nodeReady(t.Context(), "worker-1")
	require.Contains(t, message, "cni plugin not initialized")
	c.deployment(t, "default", "web", "example.com/web:1", 2)
	c.cni(t)
	c.awaitNode(t, "worker-1", corev1.ConditionTrue)
	c.awaitNode(t, "worker-2", corev1.ConditionTrue)
	c.awaitAvailable(t, "default", "web", 2)

	t.Run("pods have addresses of their node", func(t *testing.T) {
		for _, pod := range c.pods(t.Context(), "default", "web") {
			node, err := c.CoreV1().Nodes().Get(t.Context(), pod.Spec.NodeName, metav1.GetOptions{})
			require.NoError(t, err)
			require.True(t, inside(node.Spec.PodCIDR, pod.Status.PodIP), "%s in %s", pod.Status.PodIP, node.Spec.PodCIDR)
			require.Equal(t, node.Status.Addresses[0].Address, pod.Status.HostIP)
		}
		for _, pod := range c.pods(t.Context(), "kube-system", "cni") {
			require.Equal(t, pod.Status.HostIP, pod.Status.PodIP)
		}
	})
	t.Run("a budget blocks an eviction", c.testBudget)
	t.Run("a missing image keeps a pod pending", c.testMissingImage)
	t.Run("a missing secret keeps a pod from starting until it comes", c.testMissingSecret)
	t.Run("a job completes", c.testJob)
	t.Run("a namespace goes with all it holds", c.testNamespace)
}

func (c *cluster) testBudget(t *testing.T) {
	two := intstr.FromInt32(2)
	_, err := c.PolicyV1().PodDisruptionBudgets("default").Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &two, Selector: selector("web")},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	eventually(t, 10*time.Second, func(ctx context.Context) string {
		budget, err := c.PolicyV1().PodDisruptionBudgets("default").Get(ctx, "web", metav1.GetOptions{})
		if err != nil || budget.Status.CurrentHealthy != 2 {
			return "the budget has not counted its pods"
		}

		return ""
	})

	victim := c.pods(t.Context(), "default", "web")[0].Name
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: victim, Namespace: "default"}}
	err = c.PolicyV1().Evictions("default").Evict(t.Context(), eviction)
	require.EqualError(t, err, "Cannot evict pod as it would violate the pod's disruption budget.")

	require.NoError(t, c.PolicyV1().PodDisruptionBudgets("default").Delete(t.Context(), "web", metav1.DeleteOptions{}))
	eventually(t, 10*time.Second, func(ctx context.Context) string {
		if err := c.PolicyV1().Evictions("default").Evict(ctx, eviction); err != nil {
			return err.Error()
		}

		return ""
	})
	eventually(t, 15*time.Second, func(ctx context.Context) string {
		for _, pod := range c.pods(ctx, "default", "web") {
			if pod.Name == victim {
				return victim + " is still there"
			}
		}

		return ""
	})
	c.awaitAvailable(t, "default", "web", 2)
}

func (c *cluster) testMissingImage(t *testing.T) {
	c.deployment(t, "default", "gone", "example.com/gone:1", 1)
	eventually(t, 15*time.Second, func(ctx context.Context) string {
		for _, pod := range c.pods(ctx, "default", "gone") {
			for _, status := range pod.Status.ContainerStatuses {
				if w := status.State.Waiting; w != nil && w.Reason == "ImagePullBackOff" {
					require.Equal(t, corev1.PodPending, pod.Status.Phase)
					require.Contains(t, w.Message, "example.com/gone:1: not found")

					return ""
				}
			}
		}

		return "no pod is in ImagePullBackOff"
	})
}

func (c *cluster) testMissingSecret(t *testing.T) {
	pod := template("keyed", "example.com/web:1")
	pod.Spec.Volumes = []corev1.Volume{{Name: "key", VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: "key"},
	}}}
	one := int32(1)
	_, err := c.AppsV1().Deployments("default").Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "keyed"},
		Spec:       appsv1.DeploymentSpec{Replicas: &one, Selector: selector("keyed"), Template: pod},
	}, metav1.CreateOptions{})
	require.NoError(t, err)

	eventually(t, 15*time.Second, func(ctx context.Context) string {
		events, err := c.CoreV1().Events("default").List(ctx, metav1.ListOptions{FieldSelector: "reason=FailedMount"})
		if err != nil || len(events.Items) == 0 {
			return "no FailedMount event"
		}
		require.Equal(t, "MountVolume.SetUp failed for volume \"key\" : secret \"key\" not found", events.Items[0].Message)

		return ""
	})

	_, err = c.CoreV1().Secrets("default").Create(t.Context(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	c.awaitAvailable(t, "default", "keyed", 1)
}

func (c *cluster) testJob(t *testing.T) {
	pod := template("once", "example.com/once:1")
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, err := c.BatchV1().Jobs("default").Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "once"},
		Spec:       batchv1.JobSpec{Template: pod},
	}, metav1.CreateOptions{})
	require.NoError(t, err)

	eventually(t, 20*time.Second, func(ctx context.Context) string {
		job, err := c.BatchV1().Jobs("default").Get(ctx, "once", metav1.GetOptions{})
		if err != nil || job.Status.Succeeded != 1 || job.Status.CompletionTime == nil {
			return "the job has not succeeded"
		}

		return ""
	})
}

func (c *cluster) testNamespace(t *testing.T) {
	_, err := c.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	c.deployment(t, "shop", "cart", "example.com/web:1", 2)
	c.awaitAvailable(t, "shop", "cart", 2)

	require.NoError(t, c.CoreV1().Namespaces().Delete(t.Context(), "shop", metav1.DeleteOptions{}))
	eventually(t, 30*time.Second, func(ctx context.Context) string {
		list, err := c.CoreV1().Namespaces().List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=shop"})
		if err != nil || len(list.Items) > 0 {
			return "the namespace is still there"
		}

		return ""
	})
}
