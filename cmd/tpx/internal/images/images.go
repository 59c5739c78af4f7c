// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package images lists every image and URL that a stack will ever pull.
package images

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/pulumi"
	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/stackfile"
	"github.com/talos-proxmox/talos-proxmox/internal/airgap"
	"github.com/talos-proxmox/talos-proxmox/internal/gitops"
	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Run prints the list. With check it fails when nodes or hosts pull from outside the stack's mirrors.
func Run(ctx context.Context, p pulumi.Project, cli pulumi.CLI, check bool, out io.Writer) error {
	pulls, notes, err := List(ctx, p, cli, stackfile.Cache(p.Dir))
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
	if check && outside > 0 {
		return fmt.Errorf("nodes and hosts of stack %s pull %d things from outside its mirrors", cli.Stack, outside)
	}

	return nil
}

// List returns what a stack pulls, and notes; its charts must be in the cache, or be fetched.
func List(ctx context.Context, p pulumi.Project, cli pulumi.CLI, charts manifests.Cache) ([]airgap.Pull, []string, error) {
	name := cli.Stack
	s, opened, err := stackfile.Load(ctx, p, cli)
	if err != nil {
		return nil, nil, opened.Explain(err)
	}
	cfg, err := gitops.DayZero(s.Config)
	if err != nil {
		return nil, nil, fmt.Errorf("stack %s: %w", name, err)
	}
	readFile := func(path string) ([]byte, error) { return os.ReadFile(filepath.Join(p.Dir, path)) }
	day := manifests.Input{Config: cfg, Charts: charts, ReadFile: readFile}
	if cfg.UsesCilium() {
		// Their contents do not matter here.
		certificates, err := manifests.NewCertificates(spec.Value(cfg.Cluster.Name), time.Now())
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
