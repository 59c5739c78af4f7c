// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

// DeleteNode deletes the Node that a machine had under an earlier hostname: it would stay NotReady for ever, and
// every DaemonSet would wait for it.
func DeleteNode(ctx context.Context, access cluster.Access, hostname string, p cluster.PollOptions, report func(string)) error {
	var last error
	waiting, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	err := cluster.Poll(waiting, p.Interval, func(ctx context.Context) (bool, error) {
		api, err := access.Kubernetes(ctx)
		if err == nil {
			err = api.CoreV1().Nodes().Delete(ctx, hostname, metav1.DeleteOptions{})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			cluster.Remember(ctx, &last, err)

			return false, nil
		}

		return true, nil
	})
	if err != nil {
		return fmt.Errorf("deleting Node %s, which has another hostname now: %w (%w)", hostname, err, last)
	}
	report("Node " + hostname + " is deleted: its machine has another hostname now")

	return nil
}
