// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Command bench measures what a cluster costs, by its number of nodes: what is registered, the time and the
// memory of previews and ups in the lab, the state's size, and how an up compares with the chain of waits that
// nothing can shorten. It prints one table and can draw it.
//
//	go run ./tests/bench -sizes 1,6,33 -svg docs/performance.svg
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	sizes := flags.String("sizes", "1,6,33", "numbers of nodes")
	upTo := flags.Int("up-to", 103, "the largest cluster that is brought up; larger ones are previewed only")
	speed := flags.String("speed", "60", "how much faster than life the lab's waits are")
	svg := flags.String("svg", "", "file to draw the table into")
	if err := flags.Parse(args); err != nil {
		return err
	}
	root, err := repository()
	if err != nil {
		return err
	}
	var rows []row
	for _, text := range strings.Split(*sizes, ",") {
		nodes, err := strconv.Atoi(text)
		if err != nil || nodes < 1 {
			return fmt.Errorf("-sizes: %q is not a number of nodes", text)
		}
		fmt.Fprintf(os.Stderr, "%d nodes …\n", nodes)
		measured, err := measure(ctx, root, nodes, nodes <= *upTo, *speed)
		if err != nil {
			return fmt.Errorf("%d nodes: %w", nodes, err)
		}
		rows = append(rows, measured)
	}
	fmt.Print(table(rows))
	for _, r := range rows {
		if r.IsUp {
			fmt.Printf("\n%d nodes, with the times that steps take on real machines: %s", r.Nodes, r.Lifelike)
		}
	}
	linked, err := linkTime(ctx, root)
	if err != nil {
		return err
	}
	fmt.Printf("\nlinking the program takes %.1f s\n", linked.Seconds())
	if *svg == "" {
		return nil
	}

	return os.WriteFile(*svg, []byte(draw(rows)), 0o644)
}

// repository returns the folder with bin/, the one that has go.mod.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "bin", "lab")); err == nil {
			return dir, nil
		}
	}

	return "", fmt.Errorf("there is no bin/lab here: run make tools")
}

// linkTime returns how long Go takes to link the program once all of it is compiled.
func linkTime(ctx context.Context, root string) (time.Duration, error) {
	out := filepath.Join(os.TempDir(), "bench-program")
	defer os.Remove(out) //nolint:errcheck // it was never there where building failed
	var began time.Time
	for range 2 { // the first time may have to compile
		if err := os.Remove(out); err != nil && !os.IsNotExist(err) {
			return 0, err
		}
		cmd := exec.CommandContext(ctx, "go", "build", "-o", out, ".")
		cmd.Dir = root
		began = time.Now()
		if text, err := cmd.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("linking the program: %w\n%s", err, text)
		}
	}

	return time.Since(began), nil
}
