// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/talosapi"
)

// uncordonLeftovers uncordons nodes that an interrupted run drained; those inside the gate are drained on
// purpose, and other people's cordons stay. The health check that follows finds what could not be done.
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
				l.Report(m.Name + " was drained by an interrupted run and is uncordoned")
			}
		}
	}
}
