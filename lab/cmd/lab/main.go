// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Command lab runs a site without hardware: Proxmox VE, the Image Factory, Talos and Kubernetes on
// loopback, for programs that believe they talk to the real ones.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/talos-proxmox/talos-proxmox/lab/env"
)

const usage = `The lab is a site without hardware: unmodified programs talk to its Proxmox VE, Talos and Kubernetes.

  lab exec [--site DIR] [--providers auto|standin|real|NAMES] [--speed N] [--steps STEPS] -- COMMAND
                            run COMMAND with the lab as its environment; starts the lab when it does not run
  lab status [--json]       hosts, VMs, nodes and clusters
  lab trace [--json]        every operation with its start and duration
  lab timeline [DURATION]   an SVG of what happened, or of what ended in the last DURATION (10m)
  lab fault kinds           what can be made to go wrong
  lab fault add KIND [KEY=VALUE …]
                            make it go wrong
  lab fault list [--json]   what goes wrong now, and how often it did
  lab fault remove ID …     end faults
  lab fault clear           end every fault
  lab stop                  stop the lab; its site stays on disk and goes on where it was
  lab serve [--speed N]     run the lab in the foreground
  lab known-hosts HOST…     the SSH host key of the site's git hosts, as in ~/.ssh/known_hosts
  lab connect HOST PORT     join standard input and output to an address of the site

STEPS are what steps take in life, where that is not what the lab takes for them, as in
download=60s,create=20s,boot=30s,install=60s,services=5s,jitter=0.2. They count for a lab that is started.

The site is in DIR, else in $LAB_SITE, else in .lab.
`

// exitCode ends the program with a code and says nothing.
type exitCode int

// Error implements error.
func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func main() {
	err := run(os.Args[1:])

	var code exitCode
	switch {
	case err == nil:
	case errors.As(err, &code):
		os.Exit(int(code))
	default:
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)

		return exitCode(2)
	}

	o, rest, err := parse(args[0], args[1:])
	if err != nil {
		return err
	}
	switch args[0] {
	case "exec":
		return execute(o, rest)
	case "serve":
		return serve(o)
	case "status":
		return printStatus(o)
	case "trace":
		return printTrace(o)
	case "timeline":
		return printTimeline(o, rest)
	case "fault":
		return faults(o, rest)
	case "stop":
		return stop(o)
	case "known-hosts":
		return knownHosts(o, rest)
	case "connect":
		return connect(o, rest)
	case "supervise":
		return supervise(rest)
	case "standin":
		return env.ServeStandins(rest) // says what it is about
	case "help", "-h", "--help":
		fmt.Print(usage)

		return nil
	}

	return fmt.Errorf("there is no command %q; `lab help` lists them", args[0])
}
