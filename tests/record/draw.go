// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"encoding/json"
	"fmt"
	"html"
	"strings"
	"time"
)

// The terminal, in characters, and its picture.
const (
	columns, rows         = 118, 30
	charWidth, lineHeight = 7.25, 17
	margin                = 12
	// rest is how long the last screen stays.
	rest = 4 * time.Second
)

// cast returns the session as asciicast v2.
func (t *tape) cast() string {
	header, _ := json.Marshal(map[string]any{"version": 2, "width": columns, "height": rows, "title": "talos-proxmox in its lab"})
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n", header)
	for _, l := range t.lines {
		text, _ := json.Marshal(l.text + "\r\n")
		fmt.Fprintf(&out, "[%.3f, \"o\", %s]\n", l.at.Seconds(), text)
	}

	return out.String()
}

// picture returns the session as an SVG that moves: lines come from below, and the screen scrolls. Where pictures stand still
// it shows the last screen.
func (t *tape) picture() string {
	length := (t.now + rest).Seconds()
	times, heights, scrolls := []string{"0"}, []string{"0"}, []string{"0 0"}
	for i, l := range t.lines {
		times = append(times, fmt.Sprintf("%.4f", l.at.Seconds()/length))
		heights = append(heights, fmt.Sprint((i+1)*lineHeight))
		scrolls = append(scrolls, fmt.Sprintf("0 %d", -max(0, i+1-rows)*lineHeight))
	}
	across := columns * charWidth
	width, height := int(across)+2*margin, rows*lineHeight+2*margin
	animate := fmt.Sprintf(`dur="%.1fs" calcMode="discrete" repeatCount="indefinite" keyTimes="%s"`, length, strings.Join(times, ";"))
	var out strings.Builder
	fmt.Fprintf(&out,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12">
<rect width="100%%" height="100%%" rx="8" fill="#16181d"/>
<clipPath id="screen"><rect x="%d" y="%d" width="%d" height="%d"/></clipPath>
<clipPath id="shown"><rect width="%d" height="%d"><animate attributeName="height" values="%s" %s/></rect></clipPath>
<g clip-path="url(#screen)"><g transform="translate(%d %d)"><g clip-path="url(#shown)" transform="translate(0 %d)">
<animateTransform attributeName="transform" type="translate" values="%s" %s/>
`, width, height, margin, margin, width-2*margin, rows*lineHeight, width, len(t.lines)*lineHeight, strings.Join(heights, ";"), animate,
		margin, margin, -max(0, len(t.lines)-rows)*lineHeight, strings.Join(scrolls, ";"), animate)
	for i, l := range t.lines {
		color := "#c8ccd4"
		if strings.HasPrefix(l.text, prompt) {
			color = "#7ec699"
		}
		if l.text != "" {
			fmt.Fprintf(&out, `<text xml:space="preserve" y="%d" fill="%s">%s</text>`+"\n", (i+1)*lineHeight-4, color, html.EscapeString(l.text))
		}
	}
	out.WriteString("</g></g></g>\n</svg>\n")

	return out.String()
}
