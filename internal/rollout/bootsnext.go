// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout

import (
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/talos-proxmox/talos-proxmox/internal/versions"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/talosapi"
)

// installsSeparately reports whether a Talos version installs and reboots in two steps.
func installsSeparately(version string) bool {
	talos, err := versions.ParseTalos(version)

	return err == nil && talos.InstallsSeparately()
}

// markInstalledImage records on the Node the image that was installed but not booted yet; empty removes the
// record. A node that Kubernetes does not know needs none.
func markInstalledImage(ctx context.Context, api kubernetes.Interface, node, image string) error {
	value := "null"
	if image != "" {
		value = strconv.Quote(image)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, cluster.BootsNextAnnotation, value)
	_, err := api.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("marking node %s: %w", node, err)
	}

	return nil
}

// installedImage returns the image that was installed on a node and not booted yet; empty for none.
func installedImage(ctx context.Context, api kubernetes.Interface, node string) (string, error) {
	n, err := api.CoreV1().Nodes().Get(talosapi.WithRetry(ctx), node, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("asking what node %s boots next: %w", node, err)
	default:
		return n.Annotations[cluster.BootsNextAnnotation], nil
	}
}
