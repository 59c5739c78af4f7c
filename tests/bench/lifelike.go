// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
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
	factor, err := strconv.ParseFloat(speed, 64)
	if err != nil {
		return err
	}
	needed := necessary(events, factor)
	fmt.Printf("%d nodes at -speed %s: %s, of which %s are necessary: %.2f\n", nodes, speed,
		took.Wall.Round(time.Second), needed.Round(time.Second), took.Wall.Seconds()/needed.Seconds())
	fmt.Print(way(events, began, began.Add(took.Wall)))

	return nil
}

// What happens on a node between the operations of the trace, in the lab's time.
const (
	restart  = 5 * time.Second  // after the installation
	services = 15 * time.Second // lifelikeSteps
	etcd     = 4 * time.Second  // until it takes the bootstrap
	join     = 20 * time.Second // a member more: etcd starts, is promoted, and the static pods start
)

// necessary returns the longest chain of steps each of which needs the one before it: the image's download, what a node
// goes through until it serves, the start of Kubernetes on the first control plane, and the join of another one.
func necessary(events []event, speed float64) time.Duration {
	took := func(e event) time.Duration { return e.End.Sub(e.Start) }
	scaled := func(d time.Duration) time.Duration { return time.Duration(float64(d) / speed) }
	var download, start time.Duration
	first, members := "", map[string]bool{}
	nodes := map[string]time.Duration{}
	for _, e := range events {
		vm := cmp.Or(e.Attrs["vm"], e.Object[strings.LastIndex(e.Object, "/")+1:])
		switch e.Op {
		case "pve.download":
			download = max(download, took(e))
		case "kubernetes.start":
			start = took(e)
		case "talos.bootstrap":
			first = vm
		case "etcd.join":
			members[vm] = true
		case "pve.qmcreate", "pve.qmstart", "talos.boot", "talos.install":
			nodes[vm] += took(e)
		}
	}
	serves := func(vm string) time.Duration { return download + nodes[vm] + scaled(restart+services) }
	api := serves(first) + scaled(etcd) + start
	longest := api
	for vm := range nodes {
		if members[vm] {
			longest = max(longest, max(api, serves(vm))+scaled(join))
		} else {
			longest = max(longest, serves(vm))
		}
	}

	return longest
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
