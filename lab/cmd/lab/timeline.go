// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/timeline"
)

// printTimeline draws the site's operations; it needs no running lab.
func printTimeline(o options, args []string) error {
	var since time.Time
	switch len(args) {
	case 0:
	case 1:
		back, err := time.ParseDuration(args[0])
		if err != nil {
			return fmt.Errorf("timeline: %q is not a duration: write one such as 10m", args[0])
		}
		since = time.Now().Add(-back)
	default:
		return errors.New("timeline: takes one duration at most")
	}
	events, err := guest.ReadTrace(o.siteDir().Trace())
	if err != nil {
		return err // says what it is about
	}
	svg, err := timeline.Draw(events, since)
	if err != nil {
		return err // says what it is about
	}
	fmt.Print(svg)

	return nil
}
