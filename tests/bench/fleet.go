// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// measureFleet brings so many clusters of one node up with examples/fleet, four at a time, and prints what one takes.
func measureFleet(ctx context.Context, root string, clusters int) error {
	b, err := open(ctx, bench{root: root, speed: "60"}, 1)
	if err != nil {
		return err
	}
	defer b.close()
	fleet, files := filepath.Join(b.dir, "fleet"), filepath.Join(b.dir, "clusters")
	build := exec.CommandContext(ctx, "go", "build", "-o", fleet, ".")
	build.Dir = filepath.Join(root, "examples", "fleet")
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the example: %w\n%s", err, text)
	}
	template, err := os.ReadFile(filepath.Join(build.Dir, "clusters", "edge-01.yaml"))
	if err != nil {
		return err
	}
	if err := os.Mkdir(files, 0o700); err != nil {
		return err
	}
	for i := 1; i <= clusters; i++ {
		name := fmt.Sprintf("edge-%03d", i)
		edit := strings.NewReplacer("edge-01", name, "701", fmt.Sprint(700+i), "10.70.0.1/", fmt.Sprintf("10.70.0.%d/", i))
		text := edit.Replace(string(template))
		if err := os.WriteFile(filepath.Join(files, name+".yaml"), []byte(text), 0o600); err != nil {
			return err
		}
	}
	for _, what := range []string{"up", "up again", "destroy"} {
		args := []string{"exec", "--", fleet, "-project", b.dir, "-clusters", files, "-at-once", "4"}
		if what == "destroy" {
			args = append(args, "-destroy")
		}
		began := time.Now()
		if _, err := b.lab(ctx, args...); err != nil {
			return err
		}
		took := time.Since(began)
		memory, _ := b.labUsage()
		fmt.Printf("%-10s %d clusters in %.0f s, %.1f s each; the lab at its largest: %.0f MiB, %.0f each\n",
			what, clusters, took.Seconds(), took.Seconds()/float64(clusters), memory, memory/float64(clusters))
	}

	return nil
}
