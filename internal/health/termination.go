// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package health

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// terminationMessage returns what the first failing pod of the system said when it ended, else which of its
// Jobs failed; empty where nothing failed or the API does not answer.
func (l *checkRun) terminationMessage(ctx context.Context) string {
	words := ""
	l.inKubernetes(ctx, func(ctx context.Context, api kubernetes.Interface) *finding {
		pods, err := api.CoreV1().Pods(SystemNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil // the node's own error is enough
		}
		for _, pod := range pods.Items {
			if words = terminationMessageOf(pod); words != "" {
				return nil
			}
		}
		jobs, err := api.BatchV1().Jobs(SystemNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil
		}
		for _, job := range jobs.Items {
			for _, c := range job.Status.Conditions {
				if c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue {
					words = fmt.Sprintf("job %s/%s has failed: %s", job.Namespace, job.Name, c.Message)

					return nil
				}
			}
		}

		return nil
	})

	return words
}

// terminationMessageOf returns what a pod's container said when it failed.
func terminationMessageOf(pod corev1.Pod) string {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		ended := cmp.Or(status.State.Terminated, status.LastTerminationState.Terminated)
		if ended == nil || ended.ExitCode == 0 || ended.Message == "" || status.Ready {
			continue
		}

		return fmt.Sprintf("pod %s/%s has failed: %s", pod.Namespace, pod.Name, strings.TrimSpace(ended.Message))
	}

	return ""
}
