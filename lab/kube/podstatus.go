// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kube

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fillPodStatus writes what the kubelet knows into the pod's status. Conditions of others stay.
func (k *kubelet) fillPodStatus(pod *corev1.Pod, s *podState) {
	status := &pod.Status
	initialized := allPassed(s.init)

	status.StartTime = &s.started
	status.Phase = podPhase(pod, s, initialized)
	status.HostIP = k.spec.Addresses[0].String()
	status.HostIPs = nil
	for _, addr := range k.spec.Addresses {
		status.HostIPs = append(status.HostIPs, corev1.HostIP{IP: addr.String()})
	}
	status.PodIP, status.PodIPs = "", nil
	for i, ip := range s.ips {
		if i == 0 {
			status.PodIP = ip
		}
		status.PodIPs = append(status.PodIPs, corev1.PodIP{IP: ip})
	}

	fillResources(pod)
	creating := "ContainerCreating"
	if len(s.init) > 0 {
		creating = "PodInitializing"
	}
	status.InitContainerStatuses = containerStatuses(pod, s.init, creating)
	status.ContainerStatuses = containerStatuses(pod, s.main, creating)
	k.fillPodConditions(pod, s, initialized)
}

func podPhase(pod *corev1.Pod, s *podState, initialized bool) corev1.PodPhase {
	if s.lost {
		return corev1.PodFailed
	}
	if !initialized && !finishedAll(s.main) {
		return corev1.PodPending
	}

	runs, waits := false, false
	for _, c := range s.main {
		switch c.phase {
		case running:
			runs = true
		case exited:
			if c.exitCode != 0 {
				return corev1.PodFailed
			}
		case waiting, pulling, starting:
			waits = waits || c.last == nil
			runs = runs || c.last != nil // it ran before
		}
	}
	switch {
	case waits:
		return corev1.PodPending
	case runs || pod.Spec.RestartPolicy == corev1.RestartPolicyAlways && pod.DeletionTimestamp == nil:
		return corev1.PodRunning
	default:
		return corev1.PodSucceeded
	}
}

func containerStatuses(pod *corev1.Pod, list []*container, creating string) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus

	for _, c := range list {
		started := c.phase == running
		status := corev1.ContainerStatus{
			Name:         c.spec.Name,
			Image:        c.spec.Image,
			Ready:        c.ready && c.phase == running || c.kind == setsUp && c.phase == exited && c.exitCode == 0,
			Started:      &started,
			RestartCount: c.restarts,

			LastTerminationState: corev1.ContainerState{Terminated: c.last},
		}
		if c.phase >= running {
			status.ImageID = imageID(c.spec.Image)
			status.ContainerID = containerID(pod, c)
			status.Resources, status.AllocatedResources = c.spec.Resources.DeepCopy(), c.spec.Resources.Requests
			status.User = userOf(pod, c.spec)
		}
		status.VolumeMounts = mountsOf(c.spec)

		switch c.phase {
		case running:
			status.State.Running = &corev1.ContainerStateRunning{StartedAt: c.started}
		case exited:
			ended := c.terminated(pod)
			status.State.Terminated = &ended
		case waiting, pulling, starting:
			status.State.Waiting = &corev1.ContainerStateWaiting{Reason: c.reason, Message: c.message}
			if c.reason == "" {
				status.State.Waiting.Reason = creating
			}
		}
		out = append(out, status)
	}

	return out
}

// terminated returns how a container has ended.
func (c *container) terminated(pod *corev1.Pod) corev1.ContainerStateTerminated {
	return corev1.ContainerStateTerminated{
		ExitCode: c.exitCode, Reason: c.reason, Message: c.message,
		StartedAt: c.started, FinishedAt: c.ended, ContainerID: containerID(pod, c),
	}
}

func (k *kubelet) fillPodConditions(pod *corev1.Pod, s *podState, initialized bool) {
	done := finished(pod)
	unready := unreadyNames(s.main)

	if done {
		k.podCondition(pod, corev1.PodReadyToStartContainers, false, "PodSandboxNotReady", "pod sandbox is not ready")
	} else {
		k.podCondition(pod, corev1.PodReadyToStartContainers, s.sandbox, "", "")
	}
	switch {
	case done && pod.Status.Phase == corev1.PodSucceeded:
		k.podCondition(pod, corev1.PodInitialized, true, "PodCompleted", "")
	case initialized:
		k.podCondition(pod, corev1.PodInitialized, true, "", "")
	default:
		k.podCondition(pod, corev1.PodInitialized, false, "ContainersNotInitialized",
			"containers with incomplete status: ["+strings.Join(notPassed(s.init), " ")+"]")
	}

	reason, message := "ContainersNotReady", "containers with unready status: ["+strings.Join(unready, " ")+"]"
	switch {
	case pod.Status.Phase == corev1.PodSucceeded:
		reason, message = "PodCompleted", ""
	case pod.Status.Phase == corev1.PodFailed:
		reason, message = "PodFailed", ""
	}
	ready := len(unready) == 0 && initialized && !done
	if ready {
		reason, message = "", ""
	}
	k.podCondition(pod, corev1.ContainersReady, ready, reason, message)

	if ready {
		if gate := closedGate(pod); gate != "" {
			ready, reason = false, "ReadinessGatesNotReady"
			message = "corresponding condition of pod readiness gate \"" + gate + "\" is not \"True\"."
		}
	}
	k.podCondition(pod, corev1.PodReady, ready, reason, message)
	k.podCondition(pod, corev1.PodScheduled, true, "", "")
}

// closedGate returns the first readiness gate of the pod that nobody has opened.
func closedGate(pod *corev1.Pod) string {
	for _, gate := range pod.Spec.ReadinessGates {
		open := false
		for _, condition := range pod.Status.Conditions {
			open = open || condition.Type == gate.ConditionType && condition.Status == corev1.ConditionTrue
		}
		if !open {
			return string(gate.ConditionType)
		}
	}

	return ""
}

func (k *kubelet) podCondition(pod *corev1.Pod, kind corev1.PodConditionType, holds bool, reason, message string) {
	next := corev1.PodCondition{
		Type: kind, Status: corev1.ConditionFalse, Reason: reason, Message: message,
		LastTransitionTime: metav1.NewTime(k.now()),
	}
	if !isMirror(pod) { // a static pod has no generation
		next.ObservedGeneration = pod.Generation
	}
	if holds {
		next.Status = corev1.ConditionTrue
	}

	for i, have := range pod.Status.Conditions {
		if have.Type != kind {
			continue
		}
		if have.Status == next.Status {
			next.LastTransitionTime = have.LastTransitionTime
		}
		pod.Status.Conditions[i] = next

		return
	}
	pod.Status.Conditions = append(pod.Status.Conditions, next)
}

func unreadyNames(list []*container) []string {
	var names []string
	for _, c := range list {
		if !c.ready || c.phase != running {
			names = append(names, c.spec.Name)
		}
	}

	return names
}

func allPassed(list []*container) bool { return len(notPassed(list)) == 0 }

func notPassed(list []*container) []string {
	var names []string
	for _, c := range list {
		if !c.passed() {
			names = append(names, c.spec.Name)
		}
	}

	return names
}

func imageID(ref string) string {
	sum := sha256.Sum256([]byte(ref))

	if i := strings.LastIndex(ref, ":"); i > strings.LastIndex(ref, "/") {
		ref = ref[:i]
	}

	return ref + "@sha256:" + hex.EncodeToString(sum[:])
}

func containerID(pod *corev1.Pod, c *container) string {
	id := string(pod.UID)
	if isMirror(pod) { // the static pod is the same, whatever becomes of its mirror
		id = pod.Annotations[configHash]
	}
	sum := sha256.Sum256([]byte(id + "/" + c.spec.Name + "/" + c.started.String()))

	return "containerd://" + hex.EncodeToString(sum[:])
}
