// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kube

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// podState holds what the kubelet knows of a pod beyond the API.
type podState struct {
	key     string
	started metav1.Time // when the kubelet first saw it
	sandbox bool        // it has an address, or is on the host network
	ips     []string
	init    []*container
	main    []*container
	lost    bool      // its containers did not survive a reboot and must not start again
	hash    string    // of a static pod
	stopAt  time.Time // when its containers end, after deletion
	killed  bool      // they do not end by themselves
	warned  string    // the last warning, not to repeat it
}

func (s *podState) all() []*container { return slices.Concat(s.init, s.main) }

// syncPod brings one pod a step on and tells after which time to look again, 0 for never.
func (k *kubelet) syncPod(ctx context.Context, key string) (time.Duration, error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return 0, err
	}

	pod, err := k.pods.Pods(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		k.forgetUnlessStatic(key)

		return 0, nil
	}
	if err != nil {
		return 0, err
	}

	state := k.states[pod.UID]
	if state == nil {
		state = k.successor(pod, key)
		k.forget(key)
		if state == nil {
			state = k.newPodState(pod)
		}
		k.states[pod.UID] = state
	}

	if pod.DeletionTimestamp != nil {
		return k.terminate(ctx, pod, state)
	}
	if finished(pod) {
		return 0, nil
	}

	after := k.advance(ctx, pod, state)
	if err := k.report(ctx, pod, state); err != nil {
		return 0, err
	}
	if isCNI(pod) && runningAll(state.main) {
		k.setNetwork()
	}

	return after, nil
}

// successor returns the state of the static pod whose mirror somebody deleted: its containers run on. It returns nil for any other
// pod.
func (k *kubelet) successor(pod *corev1.Pod, key string) *podState {
	if !isMirror(pod) {
		return nil
	}
	for _, former := range k.states {
		if former.key == key && former.hash == pod.Annotations[configHash] {
			former.stopAt = time.Time{}

			return former
		}
	}

	return nil
}

// forget drops what is known of pods of this name: they are gone.
func (k *kubelet) forget(key string) {
	for uid, state := range k.states {
		if state.key == key {
			delete(k.states, uid)
		}
	}
}

// forgetUnlessStatic drops what is known of pods that are gone, but for a static pod: only its mirror is.
func (k *kubelet) forgetUnlessStatic(key string) {
	for uid, state := range k.states {
		if state.key == key && state.hash == "" {
			delete(k.states, uid)
		}
	}
}

// newPodState starts from what the API shows of the pod: nothing, what an earlier boot left, or what
// the kubelet of the same boot has started.
func (k *kubelet) newPodState(pod *corev1.Pod) *podState {
	s := &podState{key: pod.Namespace + "/" + pod.Name, started: metav1.NewTime(k.now()), hash: pod.Annotations[configHash]}
	if pod.Status.StartTime != nil {
		s.started = *pod.Status.StartTime
	}

	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	ran := false
	for _, status := range statuses {
		ran = ran || status.State.Running != nil
		if status.ImageID != "" {
			k.pulled[status.Image] = true // images stay on the node's disk
		}
	}
	if k.resumed && ran {
		s.sandbox = true
		for _, ip := range pod.Status.PodIPs {
			s.ips = append(s.ips, ip.IP)
		}
	}

	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		s.init = append(s.init, k.newContainer(c, role(c.RestartPolicy), statuses))
	}
	kind := serves
	if pod.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		kind = works
	}
	for i := range pod.Spec.Containers {
		s.main = append(s.main, k.newContainer(&pod.Spec.Containers[i], kind, statuses))
	}
	s.lost = ran && !k.resumed && pod.Spec.RestartPolicy == corev1.RestartPolicyNever

	return s
}

// advance moves the containers on as far as the time allows.
func (k *kubelet) advance(ctx context.Context, pod *corev1.Pod, s *podState) time.Duration {
	if s.lost {
		for _, c := range s.all() {
			c.fail(k.now(), 137, "Unknown", "the node restarted under the container")
		}

		return 0
	}

	if !s.sandbox && !k.makeSandbox(ctx, pod, s) {
		return k.pace.retry
	}

	for _, c := range s.init {
		after := k.step(ctx, pod, s, c)
		if !c.passed() {
			return after
		}
	}

	var next time.Duration
	for _, c := range s.main {
		if after := k.step(ctx, pod, s, c); after > 0 && (next == 0 || after < next) {
			next = after
		}
	}
	if finishedAll(s.main) {
		for _, c := range s.init {
			c.complete(k.now()) // sidecars end with the pod
		}
	}

	return next
}

// terminate ends a deleted pod's containers within its grace and then removes the pod.
func (k *kubelet) terminate(ctx context.Context, pod *corev1.Pod, s *podState) (time.Duration, error) {
	now := k.now()
	if s.stopAt.IsZero() {
		s.stopAt = now
		if started(s) && !finished(pod) && !isMirror(pod) {
			grace := time.Duration(0)
			if pod.DeletionGracePeriodSeconds != nil {
				grace = time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
			}
			s.stopAt, s.killed = now.Add(min(k.pace.scale(grace), k.pace.quit)), k.pace.scale(grace) <= k.pace.quit
		}
	}

	if now.Before(s.stopAt) { // it stays as ready as it is
		return s.stopAt.Sub(now), nil
	}
	if !isMirror(pod) && started(s) {
		for _, c := range s.all() {
			if s.killed {
				c.fail(now, 137, "Error", "")
			} else {
				c.complete(now)
			}
		}
		if err := k.report(ctx, pod, s); err != nil {
			return 0, err
		}
	}

	zero := int64(0)
	err := k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &zero, Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return 0, nil
	}

	return 0, err
}

// report writes the pod's status if it says something new.
func (k *kubelet) report(ctx context.Context, pod *corev1.Pod, s *podState) error {
	updated := pod.DeepCopy()
	k.fillPodStatus(updated, s)
	if equality.Semantic.DeepEqual(pod.Status, updated.Status) {
		return nil
	}

	_, err := k.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, updated, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}

	return err
}

// warn records an event about the pod, once for each text.
func (k *kubelet) warn(pod *corev1.Pod, s *podState, reason, message string) {
	if s.warned == message {
		return
	}
	s.warned = message
	k.events.Event(pod, corev1.EventTypeWarning, reason, message)
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func isMirror(pod *corev1.Pod) bool {
	_, ok := pod.Annotations[corev1.MirrorPodAnnotationKey]

	return ok
}
