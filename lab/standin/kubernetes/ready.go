// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kubernetes

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// readyByKind returns the kinds that the plugin waits for; others are ready at once.
func readyByKind(u *unstructured.Unstructured) readiness {
	switch u.GroupVersionKind().Group + "/" + u.GetKind() {
	case "apps/Deployment":
		return deploymentReady
	case "apps/StatefulSet":
		return statefulSetReady
	case "apps/DaemonSet":
		return daemonSetReady
	case "batch/Job":
		return jobReady
	case "/Pod":
		return podReady
	case "/PersistentVolumeClaim":
		return claimReady
	case "/Service":
		return serviceReady
	}

	return nil
}

func intAt(u *unstructured.Unstructured, fields ...string) int64 {
	n, _, _ := unstructured.NestedInt64(u.Object, fields...)
	return n
}

func textAt(u *unstructured.Unstructured, fields ...string) string {
	s, _, _ := unstructured.NestedString(u.Object, fields...)
	return s
}

// condition finds a condition of the status by type.
func condition(u *unstructured.Unstructured, kind string) (status, reason, message string) {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, e := range list {
		c, ok := e.(map[string]any)
		if !ok || c["type"] != kind {
			continue
		}
		status, _ = c["status"].(string)
		reason, _ = c["reason"].(string)
		message, _ = c["message"].(string)
		return status, reason, message
	}

	return "", "", ""
}

func observed(u *unstructured.Unstructured) bool {
	return intAt(u, "status", "observedGeneration") >= u.GetGeneration()
}

func replicas(u *unstructured.Unstructured) int64 {
	n, found, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	if !found {
		return 1
	}

	return n
}

func deploymentReady(u *unstructured.Unstructured) (bool, string) {
	if !observed(u) {
		return false, "Waiting for app ReplicaSet to be available"
	}

	if status, reason, message := condition(u, "Progressing"); status == "False" {
		return false, fmt.Sprintf("[%s] %s", reason, message)
	}

	want := replicas(u)
	available, _, _ := condition(u, "Available")
	updated, ready := intAt(u, "status", "updatedReplicas"), intAt(u, "status", "availableReplicas")
	if available == "True" && updated >= want && ready >= want && intAt(u, "status", "replicas") <= want {
		return true, ""
	}

	return false, fmt.Sprintf("Waiting for app ReplicaSet to be available (%d/%d Pods available)", ready, want)
}

func statefulSetReady(u *unstructured.Unstructured) (bool, string) {
	want := replicas(u)
	ready, updated := intAt(u, "status", "readyReplicas"), intAt(u, "status", "updatedReplicas")
	settled := textAt(u, "status", "currentRevision") == textAt(u, "status", "updateRevision")

	if observed(u) && ready >= want && (settled || updated >= want) {
		return true, ""
	}

	return false, fmt.Sprintf("Waiting for StatefulSet to create Pods (%d/%d Pods ready)", ready, want)
}

func daemonSetReady(u *unstructured.Unstructured) (bool, string) {
	want := intAt(u, "status", "desiredNumberScheduled")
	ready, updated := intAt(u, "status", "numberReady"), intAt(u, "status", "updatedNumberScheduled")

	if observed(u) && ready >= want && updated >= want {
		return true, ""
	}

	return false, fmt.Sprintf("Waiting for DaemonSet Pods (%d/%d ready)", ready, want)
}

func jobReady(u *unstructured.Unstructured) (bool, string) {
	if status, _, _ := condition(u, "Complete"); status == "True" {
		return true, ""
	}
	if status, reason, message := condition(u, "Failed"); status == "True" {
		return false, fmt.Sprintf("[%s] %s", reason, message)
	}

	return false, "Waiting for Job to succeed"
}

func podReady(u *unstructured.Unstructured) (bool, string) {
	if textAt(u, "status", "phase") == "Succeeded" {
		return true, ""
	}

	status, reason, message := condition(u, "Ready")
	if status == "True" {
		return true, ""
	}

	return false, fmt.Sprintf("Waiting for Pod to be ready [%s] %s", reason, message)
}

func claimReady(u *unstructured.Unstructured) (bool, string) {
	// A claim that waits for its first consumer is pending with a class and no volume.
	switch textAt(u, "status", "phase") {
	case "Bound":
		return true, ""
	case "Pending":
		if textAt(u, "metadata", "annotations", "volume.beta.kubernetes.io/storage-provisioner") == "" &&
			textAt(u, "spec", "storageClassName") != "" {
			return true, ""
		}
	}

	return false, "Waiting for PersistentVolumeClaim to be bound"
}

// serviceReady: a load balancer has its address. Endpoints are the pods' business.
func serviceReady(u *unstructured.Unstructured) (bool, string) {
	if textAt(u, "spec", "type") != "LoadBalancer" {
		return true, ""
	}

	ingress, _, _ := unstructured.NestedSlice(u.Object, "status", "loadBalancer", "ingress")
	if len(ingress) > 0 {
		return true, ""
	}

	return false, "Waiting for LoadBalancer to be allocated an address"
}
