// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
)

// defaultSpeed makes a node's boot and install take a second or two.
const defaultSpeed = 60

// options are the flags of all commands.
type options struct {
	site      string // absolute
	providers string
	speed     float64
	speedSet  bool
	json      bool
}

func parse(command string, args []string) (options, []string, error) {
	var o options

	f := flag.NewFlagSet("lab "+command, flag.ContinueOnError)
	f.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	f.StringVar(&o.site, "site", os.Getenv("LAB_SITE"), "")
	f.Float64Var(&o.speed, "speed", defaultSpeed, "")
	f.StringVar(&o.providers, "providers", "auto", "")
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
	o.site = site

	switch {
	case o.speed <= 0:
		return o, nil, fmt.Errorf("--speed: must be above 0, got %v", o.speed)
	case o.providers != "auto" && o.providers != "standin" && o.providers != "real":
		return o, nil, fmt.Errorf("--providers: must be auto, standin or real, got %q", o.providers)
	}

	return o, f.Args(), nil
}

func (o options) path(name string) string { return filepath.Join(o.site, name) }

// socket is where the lab is controlled. Unix sockets have short names, so a site far down gets one elsewhere.
func (o options) socket() string {
	const longest = 100
	if p := o.path("lab.sock"); len(p) <= longest {
		return p
	}

	h := fnv.New64a()
	_, _ = h.Write([]byte(o.site)) // never fails

	return filepath.Join(os.TempDir(), fmt.Sprintf("lab-%d-%x.sock", os.Getuid(), h.Sum64()))
}

// tool is a file that `make tools` puts beside the lab; a variable can name another one.
func tool(name, variable string) (string, error) {
	if p := os.Getenv(variable); p != "" {
		return p, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding %s: %w", name, err)
	}
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}

	return filepath.Join(filepath.Dir(self), name), nil
}
