// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kubelets

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// image is a program that serves until it is asked to end, in the registry of genuine nodes.
const image = "example.com/web:1"

// podOf returns a pod on the worker.
func (s Site) podOf(name string, grace int64, env ...corev1.EnvVar) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{corev1.LabelHostname: s.Worker}, TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{Name: "web", Image: image, Env: env}},
		},
	}
}

// create makes a pod and waits until it is as it should be.
func (s Site) create(ctx context.Context, pod *corev1.Pod, as func(*corev1.Pod) error) (*corev1.Pod, error) {
	err := s.until(ctx, "creating pod "+pod.Name, func(ctx context.Context) error { // its service account may take a moment
		_, err := s.Client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{})

		return err
	})
	if err != nil {
		return nil, err
	}

	return s.await(ctx, pod.Name, as)
}

func (s Site) await(ctx context.Context, name string, as func(*corev1.Pod) error) (*corev1.Pod, error) {
	var pod *corev1.Pod
	err := s.until(ctx, "pod "+name, func(ctx context.Context) (err error) {
		if pod, err = s.Client.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}

		return as(pod)
	})

	return pod, err
}

// connect gives the nodes a network, as a CNI's DaemonSet does.
func (s Site) connect(ctx context.Context) error {
	labels := map[string]string{"k8s-app": "cni", "app": "flannel"}
	_, err := s.Client.AppsV1().DaemonSets(metav1.NamespaceSystem).Create(ctx, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "kube-flannel", Labels: labels},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				HostNetwork: true, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
				Containers: []corev1.Container{{
					Name: "cni", Image: "example.com/cni:1", VolumeMounts: []corev1.VolumeMount{{Name: "cni", MountPath: "/etc/cni/net.d"}},
					Env: []corev1.EnvVar{{
						Name: "NODE_ADDRESS", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.hostIP"}},
					}},
				}},
				Volumes: []corev1.Volume{{Name: "cni", VolumeSource: corev1.VolumeSource{
					HostPath: &corev1.HostPathVolumeSource{Path: "/etc/cni/net.d"},
				}}},
			}},
		},
	}, metav1.CreateOptions{})

	return err
}

// Connect gives the nodes a network for pods, and waits until they are ready.
func (s Site) Connect(ctx context.Context, nodes ...string) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	for _, name := range nodes {
		if _, err := s.awaitNode(ctx, name, corev1.ConditionTrue); err != nil {
			return err
		}
	}

	return nil
}

// network returns how the nodes look once they have a network.
func (s Site) network(ctx context.Context) (any, error) {
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	found := map[string]any{}
	for _, name := range []string{s.Control, s.Worker} {
		node, err := s.awaitNode(ctx, name, corev1.ConditionTrue)
		if err != nil {
			return nil, err
		}
		found[name] = map[string]any{"conditions": node.Status.Conditions, "taints": node.Spec.Taints}
	}

	return found, nil
}

// pod returns a pod that serves, and what was said of it.
func (s Site) pod(ctx context.Context) (any, error) {
	pod, err := s.create(ctx, s.podOf("web", 30), isReady)
	if err != nil {
		return nil, err
	}
	var said []string
	err = s.until(ctx, "events of pod web", func(ctx context.Context) error {
		list, err := s.Client.CoreV1().Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=web"})
		if err != nil {
			return err
		}
		said = nil
		for _, e := range list.Items {
			said = append(said, e.Type+" "+e.Reason+" "+e.Source.Component)
		}
		slices.Sort(said)
		if len(said) < 5 {
			return fmt.Errorf("only %v", said)
		}

		return nil
	})
	if err != nil {
		said = append(said, "nothing more")
	}

	return map[string]any{"pod": pod, "events": said}, nil
}

// refusedEviction returns what a budget without a pod to spare answers.
func (s Site) refusedEviction(ctx context.Context) (any, error) {
	one := intstr.FromInt(1)
	budgets := s.Client.PolicyV1().PodDisruptionBudgets(metav1.NamespaceDefault)
	_, err := budgets.Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	var budget *policyv1.PodDisruptionBudget
	err = s.until(ctx, "budget", func(ctx context.Context) (err error) {
		if budget, err = budgets.Get(ctx, "web", metav1.GetOptions{}); err == nil && budget.Status.CurrentHealthy != 1 {
			err = fmt.Errorf("healthy pods: %d", budget.Status.CurrentHealthy)
		}

		return err
	})
	if err != nil {
		return nil, err
	}
	refused := s.evict(ctx, "web")
	if status := apierrors.APIStatus(nil); !errors.As(refused, &status) {
		return nil, fmt.Errorf("eviction was not refused: %w", refused)
	} else {
		return map[string]any{"answer": status.Status(), "budget": budget.Status}, budgets.Delete(ctx, "web", metav1.DeleteOptions{})
	}
}

// eviction returns how a pod goes that takes its time, and less than it has.
func (s Site) eviction(ctx context.Context) (any, error) {
	if _, err := s.create(ctx, s.podOf("slow", 20, corev1.EnvVar{Name: "ENDS_AFTER", Value: "2s"}), isReady); err != nil {
		return nil, err
	}

	return s.life(ctx, "slow", func(ctx context.Context) error { return s.evict(ctx, "slow") })
}

// killed returns how a pod goes that would take longer than it has.
func (s Site) killed(ctx context.Context) (any, error) {
	if _, err := s.create(ctx, s.podOf("stubborn", 2, corev1.EnvVar{Name: "ENDS_AFTER", Value: "60s"}), isReady); err != nil {
		return nil, err
	}

	return s.life(ctx, "stubborn", func(ctx context.Context) error {
		return s.Client.CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, "stubborn", metav1.DeleteOptions{})
	})
}

// done returns a pod whose containers have ended, one after the other.
func (s Site) done(ctx context.Context) (any, error) {
	pod := s.podOf("job", 5, corev1.EnvVar{Name: "ENDS_AT_ONCE", Value: "yes"})
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	first := pod.Spec.Containers[0]
	first.Name = "first"
	pod.Spec.InitContainers = []corev1.Container{first}

	return s.create(ctx, pod, func(pod *corev1.Pod) error {
		if pod.Status.Phase != corev1.PodSucceeded {
			return fmt.Errorf("pod is %s: %v", pod.Status.Phase, pod.Status.ContainerStatuses)
		}

		return nil
	})
}

// missing returns a pod that waits for a ConfigMap.
func (s Site) missing(ctx context.Context) (any, error) {
	pod := s.podOf("waits", 0)
	pod.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{
		ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "nothing"}},
	}}
	waits, err := s.create(ctx, pod, func(pod *corev1.Pod) error {
		for _, c := range pod.Status.ContainerStatuses {
			if c.State.Waiting != nil && c.State.Waiting.Reason == "CreateContainerConfigError" {
				return nil
			}
		}

		return fmt.Errorf("pod is %s: %v", pod.Status.Phase, pod.Status.ContainerStatuses)
	})
	if err != nil {
		return nil, err
	}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "nothing"}}
	if _, err = s.Client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, configMap, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	_, err = s.await(ctx, "waits", isReady)

	return waits.Status, err
}

// deletedMirror returns what becomes of a mirror pod that somebody deletes: its containers run on.
func (s Site) deletedMirror(ctx context.Context) (any, error) {
	pods, name := s.Client.CoreV1().Pods(metav1.NamespaceSystem), "kube-scheduler-"+s.Control
	before, err := pods.Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		err = pods.Delete(ctx, name, metav1.DeleteOptions{})
	}
	if err != nil {
		return nil, err
	}
	var after *corev1.Pod
	err = s.until(ctx, "mirror pod", func(ctx context.Context) (err error) {
		if after, err = pods.Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		if after.UID == before.UID {
			return errors.New("it is still there")
		}

		return isReady(after)
	})
	if err != nil {
		return nil, err
	}

	return map[string]any{
		"same container": before.Status.ContainerStatuses[0].ContainerID == after.Status.ContainerStatuses[0].ContainerID,
		"same hash":      before.Annotations[corev1.MirrorPodAnnotationKey] == after.Annotations[corev1.MirrorPodAnnotationKey],
		"restarts more":  after.Status.ContainerStatuses[0].RestartCount > before.Status.ContainerStatuses[0].RestartCount,
	}, nil
}

// cordon returns what a node that is cordoned looks like, and a pod that wants to go there.
func (s Site) cordon(ctx context.Context) (any, error) {
	if err := s.schedulable(ctx, false); err != nil {
		return nil, err
	}
	var node *corev1.Node
	err := s.until(ctx, "cordon", func(ctx context.Context) (err error) {
		node, err = s.Client.CoreV1().Nodes().Get(ctx, s.Worker, metav1.GetOptions{})
		if err == nil && len(node.Spec.Taints) == 0 {
			err = errors.New("it has no taint yet")
		}

		return err
	})
	if err != nil {
		return nil, err
	}
	pod, err := s.create(ctx, s.podOf("late", 0), func(pod *corev1.Pod) error {
		if len(pod.Status.Conditions) == 0 {
			return errors.New("the scheduler has not said anything yet")
		}

		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := s.schedulable(ctx, true); err != nil {
		return nil, err
	}
	_, err = s.await(ctx, "late", isReady)

	return map[string]any{"taints": node.Spec.Taints, "ready": condition(node, corev1.NodeReady).Status, "pod": pod.Status}, err
}

func (s Site) schedulable(ctx context.Context, yes bool) error {
	_, err := s.Client.CoreV1().Nodes().Patch(ctx, s.Worker, types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, !yes), metav1.PatchOptions{})

	return err
}

// restart returns what a kubelet that restarts does to the pod that serves.
func (s Site) restart(ctx context.Context) (any, error) {
	leases := s.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	before, err := s.await(ctx, "web", isReady)
	if err == nil {
		err = s.Restart(ctx)
	}
	if err != nil {
		return nil, err
	}
	began := time.Now()
	err = s.until(ctx, "lease", func(ctx context.Context) error {
		lease, err := leases.Get(ctx, s.Worker, metav1.GetOptions{})
		if err == nil && !lease.Spec.RenewTime.After(began) {
			err = fmt.Errorf("it was renewed at %s", lease.Spec.RenewTime)
		}

		return err
	})
	if err != nil {
		return nil, err
	}
	node, err := s.awaitNode(ctx, s.Worker, corev1.ConditionTrue)
	if err != nil {
		return nil, err
	}
	after, err := s.await(ctx, "web", isReady)
	if err != nil {
		return nil, err
	}

	return map[string]any{
		"same container": before.Status.ContainerStatuses[0].ContainerID == after.Status.ContainerStatuses[0].ContainerID,
		"restarts":       after.Status.ContainerStatuses[0].RestartCount, "cordoned": node.Spec.Unschedulable,
	}, nil
}
