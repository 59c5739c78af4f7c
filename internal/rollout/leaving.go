// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

// markLeaving marks a node as asked to leave, or removes the mark. A node that Kubernetes does not know needs
// none.
func markLeaving(ctx context.Context, api kubernetes.Interface, m cluster.Member, leaving bool) error {
	value := "null"
	if leaving {
		value = `"true"`
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, cluster.LeavingAnnotation, value)
	_, err := api.CoreV1().Nodes().Patch(ctx, m.Hostname, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("noting that node %s leaves: %w", m.Hostname, err)
	}

	return nil
}

// isLeaving reports whether an earlier run asked the node to leave.
func isLeaving(ctx context.Context, api kubernetes.Interface, m cluster.Member) (bool, error) {
	node, err := nodeOf(ctx, api, m)

	return node != nil && node.Annotations[cluster.LeavingAnnotation] != "", err
}
