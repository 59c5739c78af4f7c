// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Command images lists every image and URL that a stack will ever pull: who pulls it, its name, and
// where it comes from once the stack's mirrors are applied. What lies outside the mirrors is marked.
//
//	go run ./cmd/images [-dir DIRECTORY] [-check] STACK
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/talos-proxmox/talos-proxmox/cmd/internal/stackfile"
	"github.com/talos-proxmox/talos-proxmox/internal/airgap"
	"github.com/talos-proxmox/talos-proxmox/internal/gitops"
	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

func main() {
	dir := flag.String("dir", ".", "the project directory")
	strict := flag.Bool("check", false, "fail when nodes or hosts pull from outside the stack's mirrors")
	name := flag.String("stack", "", "the stack")
	flag.Parse()
	if *name == "" {
		*name = flag.Arg(0)
	}
	if err := run(context.Background(), *dir, *name, *strict, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

// run prints the list.
func run(ctx context.Context, dir, name string, strict bool, out io.Writer) error {
	if name == "" {
		return errors.New("name a stack: go run ./cmd/images STACK")
	}
	pulls, notes, err := list(ctx, dir, name, stackfile.Cache(dir))
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "BY\tFROM\tFOR\t")
	outside := 0
	for _, p := range pulls {
		mark := ""
		if p.Outside {
			mark = "outside"
		}
		if p.Outside && (p.By == airgap.Node || p.By == airgap.Host) {
			outside++
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", p.By, p.From, p.Why, mark)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	for _, n := range notes {
		fmt.Fprintln(out, "note:", n)
	}
	if strict && outside > 0 {
		return fmt.Errorf("nodes and hosts of stack %s pull %d things from outside its mirrors", name, outside)
	}

	return nil
}

// list makes the list of a stack; its charts must be in the cache, or be fetched.
func list(ctx context.Context, dir, name string, charts manifests.Cache) ([]airgap.Pull, []string, error) {
	s, err := stackfile.Load(dir, name)
	if err != nil {
		return nil, nil, err
	}
	cfg, err := gitops.DayZero(s.Config)
	if err != nil {
		return nil, nil, fmt.Errorf("stack %s: %w", name, err)
	}
	readFile := func(path string) ([]byte, error) { return os.ReadFile(filepath.Join(dir, path)) }
	day := manifests.Input{Config: cfg, Charts: charts, ReadFile: readFile}
	if cfg.UsesCilium() {
		// Their contents do not matter here.
		certificates, err := manifests.NewCertificates(spec.Or(cfg.Cluster.Name, ""), time.Now())
		if err != nil {
			return nil, nil, fmt.Errorf("stack %s: %w", name, err)
		}
		day.Certificates = &certificates
	}
	objects, err := manifests.DayZero(ctx, day)
	if err != nil {
		return nil, nil, fmt.Errorf("stack %s: %w", name, err)
	}

	pulls, notes, err := airgap.List(ctx, airgap.Input{
		Config: cfg, Manifests: objects, Releases: stackfile.Releases(cfg), Charts: charts, ReadFile: readFile,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("stack %s: %w", name, err)
	}

	return pulls, notes, nil
}
