// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Command charts fills the chart cache with what the stacks need, and pins each archive's digest in the
// project's charts.lock.yaml, where none is pinned yet.
//
//	go run ./cmd/charts [-dir DIRECTORY] [STACK...]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/cmd/internal/stackfile"
	"github.com/talos-proxmox/talos-proxmox/internal/gitops"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

func main() {
	dir := flag.String("dir", ".", "the project directory")
	flag.Parse()
	if err := run(context.Background(), *dir, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "charts:", err)
		os.Exit(1)
	}
}

// run fetches the charts of the stacks, of all when none is named.
func run(ctx context.Context, dir string, names []string, out io.Writer) error {
	if len(names) == 0 {
		var err error
		if names, err = stackfile.Names(dir); err != nil {
			return err
		}
	}
	cache := stackfile.Cache(dir)
	seen := map[string]bool{}
	var errs []error
	for _, name := range names {
		s, err := stackfile.Load(dir, name)
		if err != nil {
			errs = append(errs, err)

			continue
		}
		cfg, err := gitops.DayZero(s.Config)
		if err != nil {
			errs = append(errs, err)

			continue
		}
		for _, ch := range stackfile.Charts(cfg) {
			if path := cache.Path(ch); seen[path] || !strings.Contains(spec.Or(ch.Repository, ""), "://") {
				continue
			}
			seen[cache.Path(ch)] = true
			if _, err := cache.Load(ctx, ch); err != nil {
				errs = append(errs, err)

				continue
			}
			digest, err := cache.Digest(ch)
			if err != nil {
				errs = append(errs, err)

				continue
			}
			kept, err := cache.Lock.Keep(ch, digest)
			if err != nil {
				errs = append(errs, err)

				continue
			}
			note := ""
			if kept {
				note = " (now in " + filepath.Base(cache.Lock.Path) + ")"
			}
			fmt.Fprintf(out, "%s %s %s%s\n", spec.Or(ch.Name, ""), spec.Or(ch.Version, ""), digest, note)
		}
	}

	return errors.Join(errs...)
}
