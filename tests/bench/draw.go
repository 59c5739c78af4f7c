// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"fmt"
	"math"
	"strings"
	"time"
)

const (
	drawWidth, drawHeight = 720.0, 420.0
	margin                = 60.0
)

// draw returns an SVG with the wall time of the commands over the number of nodes, both axes logarithmic, so that a
// straight line of slope one is linear growth.
func draw(rows []row) string {
	lines := []struct {
		name, colour string
		value        func(row) time.Duration
	}{
		{"plan of a new cluster", "#1f77b4", func(r row) time.Duration { return r.Plan.Wall }},
		{"up", "#d62728", func(r row) time.Duration { return r.Up.Wall }},
		{"preview again", "#2ca02c", func(r row) time.Duration { return r.Again.Wall }},
	}
	highest, most := 1.0, 1.0
	for _, r := range rows {
		most = math.Max(most, float64(r.Nodes))
		for _, l := range lines {
			highest = math.Max(highest, l.value(r).Seconds())
		}
	}
	x := func(nodes float64) float64 {
		return margin + (drawWidth-2*margin)*math.Log10(nodes)/math.Max(math.Log10(most), 1)
	}
	y := func(seconds float64) float64 {
		return drawHeight - margin - (drawHeight-2*margin)*math.Log10(math.Max(seconds, 1))/math.Max(math.Log10(highest), 1)
	}

	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="12">`+"\n",
		drawWidth, drawHeight)
	fmt.Fprintf(&b, `<rect width="%.0f" height="%.0f" fill="white"/>`+"\n", drawWidth, drawHeight)
	for _, r := range rows {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle">%d</text>`+"\n", x(float64(r.Nodes)), drawHeight-margin+20, r.Nodes)
		fmt.Fprintf(&b, `<line x1="%[1]g" y1="%[2]g" x2="%[1]g" y2="%[3]g" stroke="#eee"/>`+"\n", x(float64(r.Nodes)), margin, drawHeight-margin)
	}
	for seconds := 1.0; seconds <= highest*1.01; seconds *= 10 {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="end">%g s</text>`+"\n", margin-8, y(seconds)+4, seconds)
		fmt.Fprintf(&b, `<line x1="%g" y1="%[2]g" x2="%[3]g" y2="%[2]g" stroke="#eee"/>`+"\n", margin, y(seconds), drawWidth-margin)
	}
	for i, l := range lines {
		var points []string
		for _, r := range rows {
			if v := l.value(r); v > 0 {
				points = append(points, fmt.Sprintf("%.1f,%.1f", x(float64(r.Nodes)), y(v.Seconds())))
			}
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(points, " "), l.colour)
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" fill="%s">%s</text>`+"\n", margin+10, margin+float64(i)*16, l.colour, l.name)
	}
	fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle">nodes</text>`+"\n</svg>\n", drawWidth/2, drawHeight-15)

	return b.String()
}
