// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package health

import (
	"context"
	"fmt"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

// nodeStatus holds what one node and Kubernetes report about the node.
type nodeStatus struct {
	unreachable error
	version     string
	schematic   string
	stage       string
	unmet       []string
	cordoned    bool
	leaving     bool
}

// idle reports whether nothing is going on with the node.
func (w nodeStatus) idle() bool {
	return w.unreachable == nil && w.stage == "running" && len(w.unmet) == 0 && !w.cordoned && !w.leaving
}

// String returns "runs Talos v1.12.4 (ce4c980550dd)", and what is going on.
func (w nodeStatus) String() string {
	if w.unreachable != nil {
		return "does not answer: " + w.unreachable.Error()
	}
	text := "runs Talos " + cluster.Image{Version: w.version, Schematic: w.schematic}.String()
	if w.stage != "running" {
		text += ", is " + w.stage
	}
	if len(w.unmet) > 0 {
		text += ", waits for " + strings.Join(w.unmet, "; ")
	}
	if w.cordoned {
		text += ", takes no pods"
	}
	if w.leaving {
		text += ", was asked to leave"
	}

	return text
}

// Status returns one line per node when nodes differ from each other or one of them does not just run, and
// nothing when all agree. It asks once and waits for no node longer than one call.
func Status(ctx context.Context, access cluster.Access, c cluster.Cluster, p cluster.PollOptions) []string {
	api, err := access.Talos(ctx)
	if err != nil {
		return nil
	}
	seen := make([]nodeStatus, len(c.Members))
	var asked sync.WaitGroup
	for i, m := range c.Members {
		asked.Go(func() {
			calling, cancel := context.WithTimeout(ctx, p.Call)
			defer cancel()
			seen[i] = statusOf(calling, api, m)
		})
	}
	asked.Wait()
	addFromKubernetes(ctx, access, c, p, seen)

	alike := true
	for _, w := range seen {
		alike = alike && w.idle() && w.version == seen[0].version && w.schematic == seen[0].schematic
	}
	if alike {
		return nil
	}
	lines := make([]string, 0, len(seen))
	for i, m := range c.Members {
		lines = append(lines, m.Name+" "+seen[i].String())
	}

	return lines
}

func statusOf(ctx context.Context, api cluster.Talos, m cluster.Member) nodeStatus {
	var w nodeStatus
	if w.version, w.unreachable = api.Version(ctx, m.Address); w.unreachable != nil {
		return w
	}
	if w.schematic, w.unreachable = api.Schematic(ctx, m.Address); w.unreachable != nil {
		return w
	}
	w.stage, w.unmet, w.unreachable = api.Stage(ctx, m.Address)

	return w
}

// addFromKubernetes adds what only Kubernetes knows; without it the nodes' own answers are enough.
func addFromKubernetes(ctx context.Context, access cluster.Access, c cluster.Cluster, p cluster.PollOptions, seen []nodeStatus) {
	calling, cancel := context.WithTimeout(ctx, p.Call)
	defer cancel()
	api, err := access.Kubernetes(calling)
	if err != nil {
		return
	}
	nodes, err := api.CoreV1().Nodes().List(calling, metav1.ListOptions{})
	if err != nil {
		return
	}
	for _, n := range nodes.Items {
		for i, m := range c.Members {
			if n.Name == m.Hostname {
				seen[i].cordoned = n.Spec.Unschedulable
				seen[i].leaving = n.Annotations[cluster.LeavingAnnotation] != ""
			}
		}
	}
}

// ReportStatus reports the status of the nodes before a run changes anything, where an earlier run left them
// in different states.
func ReportStatus(ctx context.Context, access cluster.Access, c cluster.Cluster, p cluster.PollOptions, report func(string)) {
	lines := Status(ctx, access, c, p)
	if len(lines) == 0 {
		return
	}
	report(fmt.Sprintf("cluster %q has nodes in different states:", c.Name))
	for _, line := range lines {
		report("  " + line)
	}
}
