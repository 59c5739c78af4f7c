// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package timeline draws what happened at a site: a line for each host, VM and node, a bar for each operation.
package timeline

import (
	"cmp"
	"fmt"
	"html"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

const (
	left   = 170.0 // room for the names of the lines
	width  = 900.0
	height = 26.0 // of a line
	top    = 40.0
)

// kind groups operations that share a colour.
type kind struct {
	name, colour string
	ops          []string
}

func kinds() []kind {
	return []kind{
		{"download", "#8c8c8c", []string{"pve.download", "image.pull"}},
		{"VM", "#4c78a8", []string{"pve.qmcreate", "pve.qmstart", "pve.qmreboot", "pve.qmstop", "pve.qmshutdown", "pve.qmdestroy", "vm.config"}},
		{"boot", "#f2b134", []string{"talos.boot"}},
		{"maintenance", "#e8d8a8", []string{"talos.maintenance"}},
		{"configuration", "#b279a2", []string{"talos.apply"}},
		{"install and upgrade", "#e45756", []string{"talos.install", "talos.upgrade"}},
		{"reboot and reset", "#9d3c3c", []string{"talos.reboot", "talos.reset", "talos.shutdown"}},
		{"drain", "#ff9da6", []string{"node.drain"}},
		{"etcd", "#72b7b2", []string{"talos.bootstrap", "etcd.join", "etcd.leave", "etcd.remove", "etcd.snapshot"}},
		{"Kubernetes", "#54a24b", []string{"kubernetes.start"}},
		{"serves", "#d5ecd0", []string{"node.serving"}},
	}
}

// bar draws one operation on a line.
type bar struct {
	line, kind int
	from, to   time.Time
	title      string
}

// Draw returns an SVG of the operations that ended at or after since. Operations that are still going on last until the
// end of the picture. It fails where there is nothing to draw.
func Draw(events []guest.Event, since time.Time) (string, error) {
	var bars []bar
	var end time.Time
	names := lineNames(events)
	lines := map[string]int{}
	for _, e := range events {
		k := slices.IndexFunc(kinds(), func(k kind) bool { return slices.Contains(k.ops, e.Op) })
		if k < 0 || e.Error != "" || !e.End.IsZero() && e.End.Before(since) {
			continue
		}
		name := names[e.Object]
		if _, there := lines[name]; !there {
			lines[name] = len(lines)
		}
		bars = append(bars, bar{line: lines[name], kind: k, from: later(e.Start, since), to: e.End, title: e.Op + " " + e.Object})
		end = later(later(end, e.Start), e.End)
	}
	if len(bars) == 0 {
		return "", fmt.Errorf("there is nothing to draw: no operation ended since %s", since.Format(time.TimeOnly))
	}
	begin := slices.MinFunc(bars, func(a, b bar) int { return a.from.Compare(b.from) }).from
	// What serves lies behind everything else.
	slices.SortStableFunc(bars, func(a, b bar) int { return cmp.Compare(b.kind, a.kind) })

	return render(bars, lines, begin, end), nil
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}

	return a
}

// lineNames returns the line that each object is drawn on: a VM, its tasks and its node share one.
func lineNames(events []guest.Event) map[string]string {
	hostnames := map[string]string{} // by VM id
	for _, e := range events {
		if vm, hostname := e.Attrs["vm"], e.Attrs["hostname"]; vm != "" && hostname != "" {
			hostnames[vm] = hostname
		}
	}
	vms := map[string]string{} // by object
	for _, e := range events {
		if vm := e.Attrs["vm"]; vm != "" {
			vms[e.Object] = vm
		}
	}
	names := map[string]string{}
	for _, e := range events {
		kind, object, _ := strings.Cut(e.Object, "/")
		vm := vms[e.Object]
		if _, err := strconv.Atoi(object); err == nil && (kind == "vm" || strings.HasPrefix(kind, "qm")) {
			vm = object
		}
		switch {
		case vm != "" && hostnames[vm] != "":
			names[e.Object] = hostnames[vm]
		case vm != "":
			names[e.Object] = "vm " + vm
		case kind == "download":
			names[e.Object] = "image"
		default:
			names[e.Object] = object
		}
	}

	return names
}

func render(bars []bar, lines map[string]int, begin, end time.Time) string {
	total := max(end.Sub(begin), time.Millisecond)
	x := func(t time.Time) float64 { return left + (width-left-20)*float64(t.Sub(begin))/float64(total) }
	bottom := top + height*float64(len(lines))
	var b strings.Builder
	fmt.Fprintf(&b,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="12">`+"\n", width, bottom+60)
	fmt.Fprintf(&b, `<rect width="%.0f" height="%.0f" fill="white"/>`+"\n", width, bottom+60)
	for i := range 6 {
		at := begin.Add(total * time.Duration(i) / 5)
		fmt.Fprintf(&b, `<line x1="%[1]f" y1="%[2]f" x2="%[1]f" y2="%[3]f" stroke="#ddd"/>`+"\n", x(at), top-8, bottom)
		fmt.Fprintf(&b, `<text x="%f" y="%f" text-anchor="middle">%s</text>`+"\n", x(at), top-14, at.Sub(begin).Round(100*time.Millisecond))
	}
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		line := lines[name]
		fmt.Fprintf(&b, `<text x="%f" y="%f" text-anchor="end">%s</text>`+"\n", left-10, top+height*float64(line)+16, html.EscapeString(name))
	}
	for _, bar := range bars {
		to := bar.to
		if to.IsZero() {
			to = end
		}
		y, thick := top+height*float64(bar.line)+4, height-10
		if kinds()[bar.kind].name == "serves" {
			y, thick = y-3, height-4
		}
		fmt.Fprintf(&b, `<rect x="%f" y="%f" width="%f" height="%f" fill="%s"><title>%s, %s</title></rect>`+"\n", x(bar.from), y,
			max(x(to)-x(bar.from), 1.5), thick, kinds()[bar.kind].colour, html.EscapeString(bar.title), to.Sub(bar.from).Round(time.Millisecond))
	}
	at := 20.0
	for i, k := range kinds() {
		if slices.ContainsFunc(bars, func(b bar) bool { return b.kind == i }) {
			fmt.Fprintf(&b, `<rect x="%f" y="%f" width="10" height="10" fill="%s"/><text x="%f" y="%f">%s</text>`+"\n",
				at, bottom+24, k.colour, at+14, bottom+33, k.name)
			at += 30 + 7*float64(len(k.name))
		}
	}
	b.WriteString("</svg>\n")

	return b.String()
}
