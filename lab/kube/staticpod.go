// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kube

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	systemNamespace = "kube-system"
	configHash      = "kubernetes.io/config.hash"
	configSource    = "kubernetes.io/config.source"
	configSeen      = "kubernetes.io/config.seen"
)

// keepStaticPods keeps a mirror pod in the API for each static pod, and none for others of this node.
func (k *kubelet) keepStaticPods(ctx context.Context, synced func() bool) {
	_ = poll(ctx, 100*time.Millisecond, func(context.Context) bool { return synced() })
	tick := time.NewTicker(k.pace.retry)
	defer tick.Stop()

	for {
		_ = k.mirror(ctx) // what failed is tried again at the next tick

		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (k *kubelet) mirror(ctx context.Context) error {
	all, err := k.pods.Pods(systemNamespace).List(everything())
	if err != nil {
		return err
	}
	have := map[string]*corev1.Pod{}
	for _, pod := range all {
		if isMirror(pod) {
			have[pod.Name] = pod
		}
	}

	for _, static := range k.spec.StaticPods {
		wanted := k.mirrorPod(static)
		pod, ok := have[wanted.Name]
		delete(have, wanted.Name)
		switch {
		case !ok:
			err = k.createMirror(ctx, wanted)
		case pod.Annotations[configHash] != wanted.Annotations[configHash]:
			err = k.deleteMirror(ctx, pod) // its successor comes when it is gone
		}
		if err != nil {
			return err
		}
	}
	for _, pod := range have {
		if err := k.deleteMirror(ctx, pod); err != nil {
			return err
		}
	}

	return nil
}

func (k *kubelet) createMirror(ctx context.Context, pod *corev1.Pod) error {
	node, err := k.client.CoreV1().Nodes().Get(ctx, k.spec.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	controller := true
	pod.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: &controller},
	}

	_, err = k.client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}

	return err
}

func (k *kubelet) deleteMirror(ctx context.Context, pod *corev1.Pod) error {
	zero := int64(0)
	err := k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &zero, Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
	})
	if apierrors.IsNotFound(err) {
		return nil
	}

	return err
}

// mirrorPod returns what the API shows of a static pod, with the labels that Talos gives it.
func (k *kubelet) mirrorPod(static StaticPod) *corev1.Pod {
	pod := static.Manifest.DeepCopy()
	if pod == nil {
		pod = plainPod(static)
	}
	content, _ := json.Marshal(pod) // of a pod
	sum := sha256.Sum256(append(content, k.spec.Name+"/"+static.Arguments...))
	hash := hex.EncodeToString(sum[:16])
	pod.Name, pod.Namespace = static.Name+"-"+k.spec.Name, systemNamespace
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	maps.Copy(pod.Annotations, map[string]string{
		corev1.MirrorPodAnnotationKey: hash, configHash: hash, configSource: "http", configSeen: k.now().UTC().Format(time.RFC3339Nano),
	})
	pod.Spec.NodeName, pod.Spec.RestartPolicy = k.spec.Name, corev1.RestartPolicyAlways

	return pod
}

func plainPod(static StaticPod) *corev1.Pod {
	version := static.Image[strings.LastIndex(static.Image, ":")+1:]
	priority := int32(2000000000)

	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{
				"tier":                         "control-plane",
				"k8s-app":                      static.Name,
				"component":                    static.Name,
				"app.kubernetes.io/name":       static.Name,
				"app.kubernetes.io/version":    strings.TrimPrefix(version, "v"),
				"app.kubernetes.io/component":  "control-plane",
				"app.kubernetes.io/managed-by": "Talos",
			},
		},
		Spec: corev1.PodSpec{
			HostNetwork: true, Priority: &priority, PriorityClassName: "system-cluster-critical",
			Containers: []corev1.Container{{Name: static.Name, Image: static.Image}},
		},
	}
}
