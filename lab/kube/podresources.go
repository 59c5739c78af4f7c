// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kube

import (
	corev1 "k8s.io/api/core/v1"
)

// fillResources writes what the pod has and which of its generations the kubelet has seen.
func fillResources(pod *corev1.Pod) {
	requests := corev1.ResourceList{}
	for _, c := range pod.Spec.Containers {
		for name, value := range c.Resources.Requests {
			sum := requests[name]
			sum.Add(value)
			requests[name] = sum
		}
	}
	pod.Status.Resources = &corev1.ResourceRequirements{}
	if len(requests) > 0 {
		pod.Status.Resources.Requests, pod.Status.AllocatedResources = requests, requests
	}
	if !isMirror(pod) {
		pod.Status.ObservedGeneration = pod.Generation
	}
}

// mountsOf returns a container's mounts as its status has them.
func mountsOf(c *corev1.Container) []corev1.VolumeMountStatus {
	var mounts []corev1.VolumeMountStatus
	disabled := corev1.RecursiveReadOnlyDisabled
	for _, m := range c.VolumeMounts {
		mount := corev1.VolumeMountStatus{Name: m.Name, MountPath: m.MountPath, ReadOnly: m.ReadOnly}
		if m.ReadOnly {
			mount.RecursiveReadOnly = &disabled
		}
		mounts = append(mounts, mount)
	}

	return mounts
}

// userOf returns as whom a container runs; an image that says nothing runs as root.
func userOf(pod *corev1.Pod, c *corev1.Container) *corev1.ContainerUser {
	user := &corev1.LinuxContainerUser{}
	if s := pod.Spec.SecurityContext; s != nil {
		if s.RunAsUser != nil {
			user.UID = *s.RunAsUser
		}
		if s.RunAsGroup != nil {
			user.GID = *s.RunAsGroup
		}
	}
	if s := c.SecurityContext; s != nil {
		if s.RunAsUser != nil {
			user.UID = *s.RunAsUser
		}
		if s.RunAsGroup != nil {
			user.GID = *s.RunAsGroup
		}
	}
	user.SupplementalGroups = []int64{user.GID}

	return &corev1.ContainerUser{Linux: user}
}
