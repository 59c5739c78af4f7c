// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package doctor looks, before the first up and without changing anything, at all that a stack needs: the
// tools, the Proxmox VE API and what its credentials may do there, hosts, datastores, bridges, ids,
// addresses, and what is fetched from elsewhere. It tells everything that it finds, each with a remedy.
package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/internal/proxmox"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Finding reports something that keeps an `up` from succeeding, or may do so.
type Finding struct {
	// Check that found it.
	Check string `json:"check"`
	// Setting is the path in the stack file that it concerns; empty when there is none.
	Setting string `json:"setting,omitempty"`
	// Problem says what is wrong, Remedy what to do.
	Problem string `json:"problem"`
	Remedy  string `json:"remedy"`
	// Warning says that an up may succeed nevertheless.
	Warning bool `json:"warning,omitempty"`
}

// Result says how a check ended: "ok", "found", or "skipped", and then why.
type Result struct {
	Check string `json:"check"`
	State string `json:"state"`
	Why   string `json:"why,omitempty"`
}

// Report holds everything that doctor found.
type Report struct {
	Stack    string    `json:"stack"`
	Checks   []Result  `json:"checks"`
	Findings []Finding `json:"findings"`
}

// Failed reports whether something was found that is more than a warning.
func (r Report) Failed() bool {
	for _, f := range r.Findings {
		if !f.Warning {
			return true
		}
	}

	return false
}

// Input holds what doctor looks at.
type Input struct {
	Stack  string
	Config spec.Config
	// Access is how the stack's provider reaches Proxmox VE.
	Access proxmox.Access
	// Pulumi runs the Pulumi CLI.
	Pulumi func(ctx context.Context, command string, args ...string) ([]byte, error)
	// Charts is the project's chart cache.
	Charts manifests.Cache
	// Live has doctor dial; without it, it looks at the tools and the cache alone.
	Live bool
	// Timeout bounds each connection.
	Timeout time.Duration
	// Now is the clock.
	Now func() time.Time
}

// examiner runs the checks in order; what one learns, later ones use.
type examiner struct {
	Input

	ctx      context.Context
	report   Report
	current  string
	client   *proxmox.Client
	version  int // of Proxmox VE: 8, 9
	up       map[string]bool
	machines map[int]machine
}

// errSkip ends a check that cannot look.
type errSkip struct{ why string }

func (e errSkip) Error() string { return e.why }

func skipf(format string, args ...any) error { return errSkip{fmt.Sprintf(format, args...)} }

// Run runs every check.
func Run(ctx context.Context, in Input) Report {
	e := &examiner{
		Input: in, ctx: ctx, report: Report{Stack: in.Stack, Checks: []Result{}, Findings: []Finding{}},
		up: map[string]bool{}, machines: map[int]machine{},
	}
	e.run("engine", e.engine)
	e.run("plugins", e.plugins)
	e.run("charts", e.charts)
	if !in.Live {
		return e.report
	}
	for _, c := range []struct {
		name string
		look func() error
	}{
		{"api", e.api}, {"tls", e.tls}, {"token", e.token}, {"version", e.pveVersion}, {"time", e.clock},
		{"privileges", e.privileges}, {"hosts", e.hosts}, {"storage", e.storage}, {"bridges", e.bridges},
		{"vm-ids", e.vmIDs}, {"disks", e.disks}, {"capacity", e.capacity}, {"addresses", e.addresses}, {"mappings", e.mappings},
		{"factory", e.factory}, {"mirrors", e.mirrors}, {"git", e.git},
	} {
		e.run(c.name, c.look)
	}

	return e.report
}

func (e *examiner) run(name string, look func() error) {
	e.current = name
	before := len(e.report.Findings)
	err := look()
	r := Result{Check: name, State: "ok"}
	switch {
	case err != nil:
		r.State, r.Why = "skipped", err.Error()
	case len(e.report.Findings) > before:
		r.State = "found"
	}
	e.report.Checks = append(e.report.Checks, r)
}

// found records a finding; remedy is a sentence, or commands.
func (e *examiner) found(setting, problem, remedy string) {
	e.report.Findings = append(e.report.Findings, Finding{Check: e.current, Setting: setting, Problem: problem, Remedy: remedy})
}

// warn records a finding with which an up may succeed.
func (e *examiner) warn(setting, problem, remedy string) {
	e.found(setting, problem, remedy)
	e.report.Findings[len(e.report.Findings)-1].Warning = true
}

// Print writes the report for people.
func (r Report) Print(out io.Writer) {
	for _, c := range r.Checks {
		line := c.State
		if c.Why != "" {
			line += ": " + c.Why
		}
		fmt.Fprintf(out, "%-12s %s\n", c.Check, line)
	}
	for _, f := range r.Findings {
		kind := "problem"
		if f.Warning {
			kind = "warning"
		}
		setting := ""
		if f.Setting != "" {
			setting = f.Setting + ": "
		}
		fmt.Fprintf(out, "\n%s (%s): %s%s\n  %s\n", kind, f.Check, setting, f.Problem, indent(f.Remedy))
	}
	if len(r.Findings) == 0 {
		fmt.Fprintf(out, "\nnothing was found that keeps stack %s from coming up\n", r.Stack)
	}
}

// indent puts further lines below the first.
func indent(text string) string { return strings.ReplaceAll(text, "\n", "\n  ") }

// PrintJSON writes the report as JSON.
func (r Report) PrintJSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")

	return encoder.Encode(r)
}
