// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"fmt"
	"math"
	"strings"
	"text/tabwriter"
	"time"
)

// column describes one figure of the table. Growth is shown for figures that must grow no faster than the nodes do.
type column struct {
	name   string
	value  func(row) float64
	format string
	growth bool
	upOnly bool
}

func columns() []column {
	seconds := func(of func(row) time.Duration) func(row) float64 {
		return func(r row) float64 { return of(r).Seconds() }
	}

	return []column{
		{name: "resources", value: func(r row) float64 { return float64(r.Resources) }, format: "%.0f", growth: true},
		{name: "managed", value: func(r row) float64 { return float64(r.Managed) }, format: "%.0f", growth: true},
		{name: "plan, s", value: seconds(func(r row) time.Duration { return r.Plan.Wall }), format: "%.1f"},
		{name: "CPU of the plan's program, s", value: seconds(func(r row) time.Duration { return r.Plan.CPU }), format: "%.1f", growth: true},
		{name: "memory of the plan's program, MiB", value: func(r row) float64 { return r.Plan.Memory }, format: "%.0f"},
		{name: "up, s", value: seconds(func(r row) time.Duration { return r.Up.Wall }), format: "%.1f", upOnly: true},
		{
			name: "CPU of up's program, s", value: seconds(func(r row) time.Duration { return r.Up.CPU }), format: "%.1f",
			growth: true, upOnly: true,
		},
		{name: "memory of up's program, MiB", value: func(r row) float64 { return r.Up.Memory }, format: "%.0f", upOnly: true},
		{name: "waits of the site, s", value: seconds(func(r row) time.Duration { return r.Waits }), format: "%.1f", upOnly: true},
		{name: "first VM, s", value: seconds(func(r row) time.Duration { return r.FirstVM }), format: "%.1f", upOnly: true},
		{name: "preview again, s", value: seconds(func(r row) time.Duration { return r.Again.Wall }), format: "%.1f", upOnly: true},
		{name: "second up, s", value: seconds(func(r row) time.Duration { return r.Second.Wall }), format: "%.1f", upOnly: true},
		{name: "no-op up, s", value: seconds(func(r row) time.Duration { return r.NoOp.Wall }), format: "%.1f", upOnly: true},
		{name: "state, KB", value: func(r row) float64 { return float64(r.State) / 1000 }, format: "%.0f", growth: true, upOnly: true},
		{name: "provider calls a node", value: perNode(func(r row) int { return r.Provider }), format: "%.1f", upOnly: true},
		{name: "operations a node", value: perNode(func(r row) int { return r.Calls }), format: "%.1f", upOnly: true},
		{name: "lab, MiB", value: func(r row) float64 { return r.Lab }, format: "%.0f", growth: true, upOnly: true},
		{name: "CPU of the lab, s", value: seconds(func(r row) time.Duration { return r.LabCPU }), format: "%.0f", growth: true, upOnly: true},
		{name: "in life, s", value: seconds(func(r row) time.Duration { return r.Lifelike.Took }), format: "%.0f", upOnly: true},
		{name: "at least, s", value: seconds(func(r row) time.Duration { return r.Lifelike.Allowed }), format: "%.0f", upOnly: true},
	}
}

// cell returns a row's figure as text, a dash where it was not measured.
func (c column) cell(r row) string {
	if c.upOnly && (!r.IsUp || c.value(r) == 0) {
		return "-"
	}

	return fmt.Sprintf(c.format, c.value(r))
}

// perNode returns what a figure is for each node.
func perNode(of func(row) int) func(row) float64 {
	return func(r row) float64 { return float64(of(r)) / float64(r.Nodes) }
}

// table returns the figures, and between two rows the exponent with which a figure grows: 1 is in step with the nodes.
func table(rows []row) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "nodes\t")
	for _, c := range columns() {
		fmt.Fprintf(t, "%s\t", c.name)
	}
	fmt.Fprintln(t)
	for i, r := range rows {
		if i > 0 {
			fmt.Fprint(t, "growth\t")
			for _, c := range columns() {
				fmt.Fprintf(t, "%s\t", exponent(c, rows[i-1], r))
			}
			fmt.Fprintln(t)
		}
		fmt.Fprintf(t, "%d\t", r.Nodes)
		for _, c := range columns() {
			fmt.Fprintf(t, "%s\t", c.cell(r))
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush() // into a builder

	return b.String()
}

// further returns what each further node costs, between two rows.
func further(rows []row) string {
	var b strings.Builder
	for i := 1; i < len(rows); i++ {
		from, to := rows[i-1], rows[i]
		each := func(value func(row) float64) float64 { return (value(to) - value(from)) / float64(to.Nodes-from.Nodes) }
		fmt.Fprintf(&b, "from %d nodes to %d each further node costs %.1f resources, %.1f ms of the program's CPU time in a plan",
			from.Nodes, to.Nodes, each(func(r row) float64 { return float64(r.Resources) }),
			each(func(r row) float64 { return float64(r.Plan.CPU.Milliseconds()) }))
		if from.IsUp && to.IsUp {
			fmt.Fprintf(&b, ", %.1f KB of state, %.1f MiB of the lab",
				each(func(r row) float64 { return float64(r.State) / 1000 }), each(func(r row) float64 { return r.Lab }))
		}
		fmt.Fprintln(&b)
	}

	return b.String()
}

// exponent returns e where the figure grows as the number of nodes to the power of e; empty where it says nothing.
func exponent(c column, from, to row) string {
	if !c.growth || c.upOnly && (!from.IsUp || !to.IsUp) || c.value(from) <= 0 || from.Nodes == to.Nodes {
		return ""
	}

	return fmt.Sprintf("%.2f", math.Log(c.value(to)/c.value(from))/math.Log(float64(to.Nodes)/float64(from.Nodes)))
}
