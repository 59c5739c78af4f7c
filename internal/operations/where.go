// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package operations

import (
	"context"
	"fmt"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// whereabouts is how one node stands.
type whereabouts struct {
	silent    error
	version   string
	schematic string
	stage     string
	unmet     []string
	cordoned  bool
	leaving   bool
}

// settled says whether nothing is going on with the node.
func (w whereabouts) settled() bool {
	return w.silent == nil && w.stage == "running" && len(w.unmet) == 0 && !w.cordoned && !w.leaving
}

// String is "runs Talos v1.12.4 (ce4c980550dd)", and what is going on.
func (w whereabouts) String() string {
	if w.silent != nil {
		return "does not answer: " + w.silent.Error()
	}
	text := "runs Talos " + Image{Version: w.version, Schematic: w.schematic}.String()
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

// Where says how each node stands, one line a node, where that differs: from node to node, or from a node
// that just runs. When all are alike there is nothing to say. It looks once and waits for nobody longer
// than a call takes.
func Where(ctx context.Context, access Access, c Cluster, p Patience) []string {
	api, err := access.Talos(ctx)
	if err != nil {
		return nil
	}
	seen := make([]whereabouts, len(c.Members))
	var asked sync.WaitGroup
	for i, m := range c.Members {
		asked.Go(func() {
			calling, cancel := context.WithTimeout(ctx, p.Call)
			defer cancel()
			seen[i] = whereIs(calling, api, m)
		})
	}
	asked.Wait()
	addFromKubernetes(ctx, access, c, p, seen)

	alike := true
	for _, w := range seen {
		alike = alike && w.settled() && w.version == seen[0].version && w.schematic == seen[0].schematic
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

func whereIs(ctx context.Context, api Talos, m Member) whereabouts {
	var w whereabouts
	if w.version, w.silent = api.Version(ctx, m.Address); w.silent != nil {
		return w
	}
	if w.schematic, w.silent = api.Schematic(ctx, m.Address); w.silent != nil {
		return w
	}
	w.stage, w.unmet, w.silent = api.Stage(ctx, m.Address)

	return w
}

// addFromKubernetes adds what only Kubernetes knows; without it the nodes say enough.
func addFromKubernetes(ctx context.Context, access Access, c Cluster, p Patience, seen []whereabouts) {
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
				seen[i].leaving = n.Annotations[leavingAnnotation] != ""
			}
		}
	}
}

// SayWhere reports how the nodes stand, before a run changes anything, where an earlier one has left them
// apart.
func SayWhere(ctx context.Context, access Access, c Cluster, p Patience, report func(string)) {
	lines := Where(ctx, access, c, p)
	if len(lines) == 0 {
		return
	}
	report(fmt.Sprintf("cluster %q is not all alike:", c.Name))
	for _, line := range lines {
		report("  " + line)
	}
}
