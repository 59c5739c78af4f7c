// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package operations

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// drainedAnnotation marks nodes that are drained here, not by somebody else.
const drainedAnnotation = "talos-proxmox/drained"

// release lets pods onto nodes again that an earlier run drained and was interrupted at: of those that are
// drained here only the ones inside the gate are drained for something. Nodes that somebody else
// cordoned stay so. What cannot be done is seen by the look that follows.
func (l Look) release(ctx context.Context, down Others) {
	api, err := l.Access.Kubernetes(ctx)
	if err != nil {
		return
	}
	list, err := api.CoreV1().Nodes().List(patiently(ctx), metav1.ListOptions{})
	if err != nil {
		return
	}
	c := l.Cluster
	for _, n := range list.Items {
		if _, ours := n.Annotations[drainedAnnotation]; !ours || !n.Spec.Unschedulable {
			continue
		}
		c.Down = down() // asked late: one that just got its turn is drained next
		for _, m := range c.up(c.Members) {
			if m.Hostname == n.Name && Uncordon(ctx, api, n.Name) == nil {
				l.Report(m.Name + " was drained by a run that was interrupted: pods may come again")
			}
		}
	}
}
