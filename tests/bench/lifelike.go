// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// lifelikeSteps are what steps take on real machines. Talos pulls its installer in 15 s of the site's time, which with
// the installation makes a minute; the services, etcd and the static pods of a node that joins take half a minute.
const lifelikeSteps = "download=60s,create=20s,boot=30s,install=45s,services=15s,jitter=0.2"

// printLifelike brings a cluster up whose steps take as long as on real machines, and prints from the lab's trace how
// long that took, the longest chain of steps that nothing can shorten, and where time was lost on the way.
func printLifelike(ctx context.Context, root string, nodes int, speed string) error {
	b, err := open(ctx, bench{root: root, speed: speed, steps: lifelikeSteps}, nodes)
	if err != nil {
		return err
	}
	defer b.close()
	began := time.Now()
	took, _, err := b.pulumi(ctx, "up", "--yes", "--skip-preview")
	if err != nil {
		return err
	}
	events, err := b.trace(ctx)
	if err != nil {
		return err
	}
	needed := chain(events)
	fmt.Printf("%d nodes at -speed %s: %s, of which %s are necessary: %.2f\n", nodes, speed,
		took.Wall.Round(time.Second), needed.Round(time.Second), took.Wall.Seconds()/needed.Seconds())
	fmt.Print(way(events, began, began.Add(took.Wall)))

	return nil
}

// way returns the steps of the first control plane and of the cluster one after the other, and the time between them.
func way(events []event, began, ended time.Time) string {
	vm := ""
	for _, e := range events {
		if e.Op == "talos.bootstrap" {
			vm = e.Attrs["vm"]
		}
	}
	var steps []event
	for _, e := range events {
		ofCluster := e.Op == "pve.download" || e.Op == "talos.bootstrap" || e.Op == "kubernetes.start"
		ofNode := strings.HasSuffix(e.Object, "/"+vm) || e.Attrs["vm"] == vm
		if e.Op != "talos.maintenance" && !e.End.IsZero() && (ofCluster || ofNode) {
			steps = append(steps, e)
		}
	}
	slices.SortStableFunc(steps, func(a, b event) int { return cmp.Compare(a.Start.UnixNano(), b.Start.UnixNano()) })

	var b strings.Builder
	at, lost := began, time.Duration(0)
	for _, e := range steps {
		gap := max(0, e.Start.Sub(at))
		lost += gap
		fmt.Fprintf(&b, "  %6.1f s … %6.1f s  %-20s %6.1f s after what came before\n",
			e.Start.Sub(began).Seconds(), e.End.Sub(began).Seconds(), e.Op, gap.Seconds())
		if e.End.After(at) {
			at = e.End
		}
	}
	fmt.Fprintf(&b, "  %.1f s lie between these steps, %.1f s after the last one: other nodes join, the gate looks, Pulumi ends\n",
		lost.Seconds(), ended.Sub(at).Seconds())

	return b.String()
}
