// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kube

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// missingVolume tells which Secret or ConfigMap that the pod mounts does not exist, or "".
func (k *kubelet) missingVolume(ctx context.Context, pod *corev1.Pod) string {
	for _, volume := range pod.Spec.Volumes {
		if missing := k.missingSource(ctx, pod.Namespace, volume.VolumeSource); missing != "" {
			return fmt.Sprintf("MountVolume.SetUp failed for volume %q : %s", volume.Name, missing)
		}
	}

	return ""
}

func (k *kubelet) missingSource(ctx context.Context, namespace string, source corev1.VolumeSource) string {
	switch {
	case source.Secret != nil:
		return k.missingSecret(ctx, namespace, source.Secret.SecretName, source.Secret.Optional)
	case source.ConfigMap != nil:
		return k.missingConfigMap(ctx, namespace, source.ConfigMap.Name, source.ConfigMap.Optional)
	case source.Projected != nil:
		for _, part := range source.Projected.Sources {
			missing := ""
			if part.Secret != nil {
				missing = k.missingSecret(ctx, namespace, part.Secret.Name, part.Secret.Optional)
			}
			if part.ConfigMap != nil {
				missing = k.missingConfigMap(ctx, namespace, part.ConfigMap.Name, part.ConfigMap.Optional)
			}
			if missing != "" {
				return missing
			}
		}
	}

	return ""
}

// missingEnvironment tells which Secret or ConfigMap that the container's environment takes values
// from does not exist, or "".
func (k *kubelet) missingEnvironment(ctx context.Context, namespace string, c *corev1.Container) string {
	for _, from := range c.EnvFrom {
		missing := ""
		if from.SecretRef != nil {
			missing = k.missingSecret(ctx, namespace, from.SecretRef.Name, from.SecretRef.Optional)
		}
		if from.ConfigMapRef != nil {
			missing = k.missingConfigMap(ctx, namespace, from.ConfigMapRef.Name, from.ConfigMapRef.Optional)
		}
		if missing != "" {
			return missing
		}
	}

	for _, env := range c.Env {
		if env.ValueFrom == nil {
			continue
		}
		missing := ""
		if ref := env.ValueFrom.SecretKeyRef; ref != nil {
			missing = k.missingSecret(ctx, namespace, ref.Name, ref.Optional)
		}
		if ref := env.ValueFrom.ConfigMapKeyRef; ref != nil {
			missing = k.missingConfigMap(ctx, namespace, ref.Name, ref.Optional)
		}
		if missing != "" {
			return missing
		}
	}

	return ""
}

// The lookups run as an administrator: the API server lets a node see the objects of its pods only
// some time after it learnt of the pods.

func (k *kubelet) missingSecret(ctx context.Context, namespace, name string, optional *bool) string {
	if optional != nil && *optional {
		return ""
	}
	_, err := k.admin.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})

	return missing(err)
}

func (k *kubelet) missingConfigMap(ctx context.Context, namespace, name string, optional *bool) string {
	if optional != nil && *optional {
		return ""
	}
	_, err := k.admin.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})

	return missing(err)
}

// missing returns the text of a lookup's error; one that says nothing about the object is tried again too.
func missing(err error) string {
	switch {
	case err == nil:
		return ""
	case apierrors.IsNotFound(err): // a kubelet names the kind in the singular
		text := err.Error()
		for _, kind := range []string{"configmap", "secret"} {
			text = strings.Replace(text, kind+"s \"", kind+" \"", 1)
		}

		return text
	default:
		return "cannot be read: " + err.Error()
	}
}
