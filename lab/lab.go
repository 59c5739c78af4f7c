// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package lab

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/talos-proxmox/talos-proxmox/lab/daemon"
	"github.com/talos-proxmox/talos-proxmox/lab/env"
	"github.com/talos-proxmox/talos-proxmox/lab/fault"
	"github.com/talos-proxmox/talos-proxmox/lab/site"
	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/tools"
)

// Lab runs a lab for one test. Its methods may be called at the same time.
type Lab struct {
	t      testing.TB
	dir    string
	bin    tools.Dir
	daemon *daemon.Daemon
	env    env.Environment
}

// Start runs a lab for a test: an empty site in a temporary directory, gone when the test ends. The test
// fails at once, saying what to do, where a tool of `make tools` is missing.
func Start(t testing.TB, opts ...Option) *Lab {
	t.Helper()

	o := settings{speed: daemon.DefaultSpeed, providers: env.Auto}
	for _, opt := range opts {
		opt(&o)
	}
	if o.speed <= 0 {
		t.Fatalf("lab: Speed: must be above 0, got %v", o.speed)
	}

	l := &Lab{t: t, dir: filepath.Join(t.TempDir(), "site")}
	kubernetes := l.findTools(o)
	log := l.openLog()
	d, err := daemon.Open(context.Background(), daemon.Options{
		Dir: l.dir, Speed: o.speed, Kubernetes: kubernetes, Charts: l.bin.Path(tools.Charts),
		Flux: l.bin.Path(tools.Flux), Program: l.bin.Path(tools.Lab), Definition: o.definition,
		Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		t.Fatalf("lab: starting on %s: %v", l.dir, err)
	}
	l.daemon = d
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("lab: stopping: %v", err)
		}
	})

	l.attach(o)

	return l
}

// findTools finds the tools and returns the path of lab-kubernetes.
func (l *Lab) findTools(o settings) string {
	l.t.Helper()

	l.bin = o.tools
	if l.bin == "" {
		bin, err := tools.Above(".")
		if err != nil {
			l.t.Fatalf("lab: %v", err)
		}
		l.bin = bin
	}
	for _, name := range []string{tools.Lab, tools.Kubernetes, tools.Pulumi} {
		if _, err := l.bin.Find(name); err != nil {
			l.t.Fatalf("lab: %v", err)
		}
	}

	return l.bin.Path(tools.Kubernetes)
}

// openLog opens the lab's log, whose end a failed test shows.
func (l *Lab) openLog() *os.File {
	l.t.Helper()

	path := l.dir + ".log"
	log, err := os.Create(path) // G304: in the test's temporary directory
	if err != nil {
		l.t.Fatalf("lab: making its log: %v", err)
	}
	l.t.Cleanup(func() {
		_ = log.Close() // the lab has stopped
		if l.t.Failed() {
			l.t.Logf("the end of the lab's log:\n%s", tail(path))
		}
	})

	return log
}

// attach makes the environment of commands.
func (l *Lab) attach(o settings) {
	l.t.Helper()

	env, err := env.New(l.daemon.Info(), l.bin, os.Environ())
	if err != nil {
		l.t.Fatalf("lab: %v", err)
	}
	detach, err := env.Attach(o.providers, l.bin.Path(tools.Lab), os.Stderr)
	if err != nil {
		l.t.Fatalf("lab: %v", err)
	}
	l.t.Cleanup(sync.OnceFunc(detach))
	l.env = env
}

// Dir returns the site's directory; `lab status --site DIR` works on it while the test runs.
func (l *Lab) Dir() string { return l.dir }

// Site returns the model behind the lab, to look at or to change behind the program's back.
func (l *Lab) Site() *site.Site { return l.daemon.Site() }

// Faults returns what goes wrong on the site, nothing at first: add one to see how a program takes it.
func (l *Lab) Faults() *fault.Set { return l.daemon.Faults() }

// Status returns what there is on the site now.
func (l *Lab) Status() daemon.Status { return l.daemon.Status() }

// Trace returns every operation of the site so far, in the order in which they ended.
func (l *Lab) Trace() []guest.Event {
	l.t.Helper()

	events, err := guest.ReadTrace(daemon.SiteDir(l.dir).Trace())
	if err != nil {
		l.t.Fatalf("lab: %v", err)
	}

	return events
}
