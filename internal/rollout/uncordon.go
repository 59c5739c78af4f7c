// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/talosapi"
)

// release lets pods onto nodes again that an earlier run drained and was interrupted at: of those that are
// drained here only the ones inside the gate are drained for something. Nodes that somebody else
// cordoned stay so. What cannot be done is seen by the look that follows.
func (l HealthChecker) uncordonLeftovers(ctx context.Context, down Others) {
	api, err := l.Access.Kubernetes(ctx)
	if err != nil {
		return
	}
	list, err := api.CoreV1().Nodes().List(talosapi.WithRetry(ctx), metav1.ListOptions{})
	if err != nil {
		return
	}
	c := l.Cluster
	for _, n := range list.Items {
		if _, ours := n.Annotations[cluster.DrainedAnnotation]; !ours || !n.Spec.Unschedulable {
			continue
		}
		c.Down = down() // asked late: one that just got its turn is drained next
		for _, m := range c.ExpectedUp(c.Members) {
			if m.Hostname == n.Name && Uncordon(ctx, api, n.Name) == nil {
				l.Report(m.Name + " was drained by a run that was interrupted: pods may come again")
			}
		}
	}
}
