// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package guest

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Step names something that takes its time on real machines and that a site can be told to take as long for.
type Step string

// The steps of a node's creation.
const (
	StepDownload Step = "download" // a host fetches an image
	StepCreate   Step = "create"   // a host makes a VM
	StepBoot     Step = "boot"     // from power-on until the API answers
	StepInstall  Step = "install"  // Talos writes itself to disk
	StepServices Step = "services" // from the boot with a configuration to a running container runtime
)

var allSteps = []Step{StepDownload, StepCreate, StepBoot, StepInstall, StepServices}

// Steps hold what steps take in the site's time. A step that is not among them takes what the lab takes for it.
type Steps struct {
	Times map[Step]time.Duration
	// Jitter is the share by which a step may take more or less, by what it concerns: 0.2 for a fifth.
	Jitter float64
}

// ParseSteps reads steps as in "download=60s,boot=30s,jitter=0.2".
func ParseSteps(text string) (Steps, error) {
	s := Steps{Times: map[Step]time.Duration{}}
	if text == "" {
		return s, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		if name == "jitter" {
			share, err := strconv.ParseFloat(value, 64)
			if err != nil || share < 0 || share >= 1 {
				return s, fmt.Errorf("jitter=%s: must be a share such as 0.2", value)
			}
			s.Jitter = share

			continue
		}
		took, err := time.ParseDuration(value)
		if err != nil || took < 0 {
			return s, fmt.Errorf("%s: must be a step and a duration, as in boot=30s", part)
		}
		if !slices.Contains(allSteps, Step(name)) {
			return s, fmt.Errorf("%s is no step; the steps are %v", name, allSteps)
		}
		s.Times[Step(name)] = took
	}

	return s, nil
}

// of returns what a step takes for what it concerns; usual is what the lab takes for it.
func (s Steps) of(step Step, concerns string, usual time.Duration) time.Duration {
	set, ok := s.Times[step]
	if !ok {
		set = usual
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(string(step) + "/" + concerns)) // never fails
	share := float64(h.Sum32()%2001)/1000 - 1

	return set + time.Duration(share*s.Jitter*float64(set))
}

// Take waits for as long as a step takes for what it concerns, or until ctx ends.
func (c Clock) Take(ctx context.Context, step Step, concerns string, usual time.Duration) error {
	return c.Sleep(ctx, c.Steps.of(step, concerns, usual))
}
