// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kube

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// podState is what the kubelet knows of a pod beyond the API.
type podState struct {
	key     string
	started metav1.Time // when the kubelet first saw it
	sandbox bool        // it has an address, or is on the host network
	ips     []string
	init    []*container
	main    []*container
	lost    bool      // its containers did not survive a reboot and must not start again
	stopAt  time.Time // when its containers end, after deletion
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
		k.forget(key)

		return 0, nil
	}
	if err != nil {
		return 0, err
	}

	state := k.states[pod.UID]
	if state == nil {
		k.forget(key)
		state = newPodState(pod, metav1.NewTime(k.now()))
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

// forget drops what is known of pods of this name: they are gone.
func (k *kubelet) forget(key string) {
	for uid, state := range k.states {
		if state.key == key {
			delete(k.states, uid)
		}
	}
}

func newPodState(pod *corev1.Pod, now metav1.Time) *podState {
	s := &podState{key: pod.Namespace + "/" + pod.Name, started: now}
	if pod.Status.StartTime != nil {
		s.started = *pod.Status.StartTime
	}

	ran := false
	for i := range pod.Spec.InitContainers {
		s.init = append(s.init, newContainer(&pod.Spec.InitContainers[i], pod.Status.InitContainerStatuses, &ran))
	}
	for i := range pod.Spec.Containers {
		s.main = append(s.main, newContainer(&pod.Spec.Containers[i], pod.Status.ContainerStatuses, &ran))
	}
	s.lost = ran && pod.Spec.RestartPolicy == corev1.RestartPolicyNever

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

	if reason, message := k.blocker(ctx, pod); reason != "" {
		k.warn(pod, s, reason, message)

		return k.pace.retry
	}
	if !s.sandbox && !k.makeSandbox(pod, s) {
		return k.pace.retry
	}

	for _, c := range s.init {
		after := k.step(ctx, pod, s, c, role(c.spec.RestartPolicy))
		if !c.passed() {
			return after
		}
	}

	kind := serves
	if pod.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		kind = works
	}
	var next time.Duration
	for _, c := range s.main {
		if after := k.step(ctx, pod, s, c, kind); after > 0 && (next == 0 || after < next) {
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

// blocker tells why no container of the pod can be created yet, as the kubelet's events do.
func (k *kubelet) blocker(ctx context.Context, pod *corev1.Pod) (reason, message string) {
	if !pod.Spec.HostNetwork && !k.networkReady() {
		return "NetworkNotReady", "network is not ready: " + noNetworkMessage
	}
	if missing := k.missingVolume(ctx, pod); missing != "" {
		return "FailedMount", missing
	}

	return "", ""
}

// makeSandbox gives the pod its addresses. It tells whether it could.
func (k *kubelet) makeSandbox(pod *corev1.Pod, s *podState) bool {
	if pod.Spec.HostNetwork {
		for _, addr := range k.spec.Addresses {
			s.ips = append(s.ips, addr.String())
		}
		s.ips = onePerFamily(s.ips)
		s.sandbox = true

		return true
	}

	k.mu.Lock()
	cidrs := k.podCIDRs
	k.mu.Unlock()

	used := map[string]bool{}
	for _, other := range k.states {
		if finishedAll(other.main) {
			continue
		}
		for _, ip := range other.ips {
			used[ip] = true
		}
	}
	var ips []string
	for _, cidr := range cidrs {
		if ip := freeAddress(cidr, used); ip != "" {
			ips = append(ips, ip)
		}
	}
	if len(ips) == 0 || len(ips) < len(cidrs) {
		k.wake() // the node's networks may have come meanwhile
		k.warn(pod, s, "FailedCreatePodSandBox", "failed to set up the pod's network: no address is free on the node")

		return false
	}
	s.ips, s.sandbox = ips, true

	return true
}

// freeAddress returns the first address of a node's pod network that is free; the first two are the
// network's and the bridge's.
func freeAddress(cidr string, used map[string]bool) string {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return ""
	}
	for addr := prefix.Masked().Addr().Next().Next(); prefix.Contains(addr.Next()); addr = addr.Next() {
		if !used[addr.String()] {
			return addr.String()
		}
	}

	return ""
}

// onePerFamily keeps the first address of each family, as a pod on the host network reports.
func onePerFamily(ips []string) []string {
	var out []string
	seen := map[bool]bool{}
	for _, ip := range ips {
		if v6 := strings.Contains(ip, ":"); !seen[v6] {
			seen[v6] = true
			out = append(out, ip)
		}
	}

	return out
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
			s.stopAt = now.Add(min(grace, k.pace.quit))
		}
	}

	if now.Before(s.stopAt) {
		for _, c := range s.all() {
			c.ready = false
		}
		if err := k.report(ctx, pod, s); err != nil {
			return 0, err
		}

		return s.stopAt.Sub(now), nil
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

// isCNI tells whether a pod sets up the node's network: it puts a config where the runtime looks.
func isCNI(pod *corev1.Pod) bool {
	for _, volume := range pod.Spec.Volumes {
		if volume.HostPath == nil {
			continue
		}
		switch strings.TrimSuffix(volume.HostPath.Path, "/") {
		case "/etc/cni", "/etc/cni/net.d":
			return true
		}
	}

	return false
}
