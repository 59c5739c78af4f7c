// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/talos-proxmox/talos-proxmox/lab/daemon"
	"github.com/talos-proxmox/talos-proxmox/lab/env"
	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

// options holds the flags of all commands.
type options struct {
	site      string // absolute
	providers env.Choice
	speed     float64
	speedSet  bool
	steps     guest.Steps
	stepsText string
	json      bool
}

func parse(command string, args []string) (options, []string, error) {
	var o options

	f := flag.NewFlagSet("lab "+command, flag.ContinueOnError)
	f.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	f.StringVar(&o.site, "site", os.Getenv("LAB_SITE"), "")
	f.Float64Var(&o.speed, "speed", daemon.DefaultSpeed, "")
	f.StringVar(&o.stepsText, "steps", "", "")
	providers := f.String("providers", string(env.Auto), "")
	f.BoolVar(&o.json, "json", false, "")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, nil, exitCode(0)
		}

		return o, nil, exitCode(2) // flag has said what is wrong
	}
	f.Visit(func(set *flag.Flag) { o.speedSet = o.speedSet || set.Name == "speed" })

	if o.site == "" {
		o.site = ".lab"
	}
	site, err := filepath.Abs(o.site)
	if err != nil {
		return o, nil, fmt.Errorf("finding the site's directory: %w", err)
	}
	o.site, o.providers = site, env.Choice(*providers)

	if o.speed <= 0 {
		return o, nil, fmt.Errorf("--speed: must be above 0, got %v", o.speed)
	}
	if o.steps, err = guest.ParseSteps(o.stepsText); err != nil {
		return o, nil, fmt.Errorf("--steps: %w", err)
	}
	if err := o.providers.Check(); err != nil {
		return o, nil, fmt.Errorf("--providers: %w", err)
	}

	return o, f.Args(), nil
}

func (o options) siteDir() daemon.SiteDir { return daemon.SiteDir(o.site) }
