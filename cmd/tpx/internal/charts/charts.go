// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package charts fills the chart cache with what stacks need, and pins each archive's digest in the
// project's charts.lock.yaml, where none is pinned yet.
package charts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/pulumi"
	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/stackfile"
	"github.com/talos-proxmox/talos-proxmox/internal/gitops"
	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Run fetches the charts of the stacks, of all that have a file when none is named.
func Run(ctx context.Context, p pulumi.Project, names []string, out io.Writer) error {
	if len(names) == 0 {
		var err error
		if names, err = p.Stacks(); err != nil {
			return err
		}
	}
	f := &filler{cache: stackfile.Cache(p.Dir), seen: map[string]bool{}, out: out}
	var errs []error
	for _, name := range names {
		s, opened, err := stackfile.Load(ctx, p, pulumi.CLI{Dir: p.Dir, Stack: name})
		if err != nil {
			errs = append(errs, opened.Explain(err))

			continue
		}
		cfg, err := gitops.DayZero(s.Config)
		if err != nil {
			errs = append(errs, fmt.Errorf("stack %s: %w", name, err))

			continue
		}
		for _, ch := range stackfile.Charts(cfg) {
			errs = append(errs, f.fill(ctx, ch))
		}
	}

	return errors.Join(errs...)
}

// filler fetches each chart once.
type filler struct {
	cache manifests.Cache
	seen  map[string]bool
	out   io.Writer
}

func (f *filler) fill(ctx context.Context, ch spec.Chart) error {
	path := f.cache.Path(ch)
	if f.seen[path] || !strings.Contains(spec.Value(ch.Repository), "://") {
		return nil
	}
	f.seen[path] = true
	if _, err := f.cache.Load(ctx, ch); err != nil {
		return err
	}
	digest, err := f.cache.Digest(ch)
	if err != nil {
		return err
	}
	added, err := f.cache.Lock.Keep(ch, digest)
	if err != nil {
		return err
	}
	note := ""
	if added {
		note = " (now in " + filepath.Base(f.cache.Lock.Path) + ")"
	}
	fmt.Fprintf(f.out, "%s %s %s%s\n", spec.Value(ch.Name), spec.Value(ch.Version), digest, note)

	return nil
}
