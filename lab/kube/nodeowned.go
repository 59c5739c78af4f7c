// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kube

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Talos notes on the Node which labels, annotations and taints it has set, so that it takes back
// its own only.
const (
	ownedLabels      = "talos.dev/owned-labels"
	ownedAnnotations = "talos.dev/owned-annotations"
	ownedTaints      = "talos.dev/owned-taints"

	controlPlaneLabel = "node-role.kubernetes.io/control-plane"
)

// applySpec brings the Node's labels, annotations and taints to what the spec says.
func (k *kubelet) applySpec(ctx context.Context, name string) error {
	nodes := k.admin.CoreV1().Nodes()
	node, err := nodes.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}

	wanted := maps.Clone(k.spec.Labels)
	if k.spec.ControlPlane {
		if wanted == nil {
			wanted = map[string]string{}
		}
		wanted[controlPlaneLabel] = ""
	}
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}

	labels := merge(node.Labels, wanted, owned(node, ownedLabels))
	annotations := merge(node.Annotations, k.spec.Annotations, owned(node, ownedAnnotations))
	taints := mergeTaints(node, k.spec.Taints, owned(node, ownedTaints))
	for key, list := range map[string][]string{
		ownedLabels: labels, ownedAnnotations: annotations, ownedTaints: taints,
	} {
		if err := setOwned(node, key, list); err != nil {
			return err
		}
	}

	_, err = nodes.Update(ctx, node, metav1.UpdateOptions{})

	return err
}

// merge sets what is wanted, leaves values that others set, removes what is owned and no longer
// wanted, and returns what is owned now.
func merge(have, wanted map[string]string, owned []string) []string {
	var now []string

	for key, value := range wanted {
		current, exists := have[key]
		if exists && current != value && !slices.Contains(owned, key) {
			continue
		}
		have[key] = value
		now = append(now, key)
	}
	for _, key := range owned {
		if _, ok := wanted[key]; !ok {
			delete(have, key)
		}
	}
	slices.Sort(now)

	return now
}

// mergeTaints does for taints what merge does for labels; a taint is known by its key.
func mergeTaints(node *corev1.Node, wanted []corev1.Taint, owned []string) []string {
	var now []string

	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return slices.Contains(owned, t.Key) || slices.ContainsFunc(wanted, func(w corev1.Taint) bool {
			return w.MatchTaint(&t) && w.Value == t.Value
		})
	})
	for _, taint := range wanted {
		if slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
			continue
		}
		node.Spec.Taints = append(node.Spec.Taints, taint)
		now = append(now, taint.Key)
	}
	slices.Sort(now)

	return now
}

func owned(node *corev1.Node, key string) []string {
	var list []string
	if err := json.Unmarshal([]byte(node.Annotations[key]), &list); err != nil {
		return nil // never set, or overwritten by somebody: nothing is known to be ours
	}

	return list
}

func setOwned(node *corev1.Node, key string, list []string) error {
	if len(list) == 0 {
		delete(node.Annotations, key)

		return nil
	}

	raw, err := json.Marshal(list)
	if err != nil {
		return err
	}
	node.Annotations[key] = string(raw)

	return nil
}
