// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package operations

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// leavingAnnotation is on the Node of a machine that was asked to leave. It outlives a run that was
// interrupted: the machine goes by itself, and nobody has to say by force that it may be silent.
const leavingAnnotation = "talos-proxmox/leaving"

// noteLeaving notes that a node was asked to leave, or takes the note back. A node that Kubernetes does
// not know needs none.
func noteLeaving(ctx context.Context, api kubernetes.Interface, m Member, leaving bool) error {
	value := "null"
	if leaving {
		value = `"true"`
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, leavingAnnotation, value)
	_, err := api.CoreV1().Nodes().Patch(ctx, m.Hostname, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("noting that node %s leaves: %w", m.Hostname, err)
	}

	return nil
}

// askedToLeave says whether an earlier run asked the node to leave.
func askedToLeave(ctx context.Context, api kubernetes.Interface, m Member) (bool, error) {
	node, err := nodeOf(ctx, api, m)

	return node != nil && node.Annotations[leavingAnnotation] != "", err
}
