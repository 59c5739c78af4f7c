// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Command bench measures what a cluster costs, by its number of nodes: what is registered, the time and the
// memory of previews and ups in the lab, the state's size, and how an up compares with the chain of waits that
// nothing can shorten. It prints one table and can draw it.
//
//	go run ./tests/bench -sizes 1,6,33
//	go run ./tests/bench -sizes 1,6,33 -rows docs/performance.json -page docs/performance.md -svg docs/pictures/performance.svg
//	go run ./tests/bench -lifelike -sizes 6,33
//	go run ./tests/bench -fleet 20
package main

import (
	"context"
	"errors"
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

// choice holds what the flags say.
type choice struct {
	sizes      string
	upTo       int
	writesUpTo int
	speed      string
	lifelike   bool
	fleet      int
	rows, svg  string
	page       string
}

func parse(args []string) (choice, error) {
	var c choice
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&c.sizes, "sizes", "1,6,33", "numbers of nodes")
	flags.IntVar(&c.upTo, "up-to", 103, "the largest cluster that is brought up; larger ones are previewed only")
	flags.IntVar(&c.writesUpTo, "writes-up-to", 303,
		"the largest cluster whose state Pulumi writes at every step; that of larger ones it writes once, at the end")
	flags.StringVar(&c.speed, "speed", "60", "how much faster than life the lab's waits are")
	flags.BoolVar(&c.lifelike, "lifelike", false,
		"only the makespan of an up with the times that steps take on real machines, as they are at -speed 1")
	flags.IntVar(&c.fleet, "fleet", 0, "only the cost of so many clusters of one node, four at a time")
	flags.StringVar(&c.rows, "rows", "", "file that keeps what was measured, and has what was measured earlier")
	flags.StringVar(&c.svg, "svg", "", "file to draw the table into")
	flags.StringVar(&c.page, "page", "", "Markdown file to write the table into, between its marks")

	return c, flags.Parse(args)
}

func run(ctx context.Context, args []string) error {
	c, err := parse(args)
	if err != nil {
		return err
	}
	root, err := repository()
	if err != nil {
		return err
	}
	if c.fleet > 0 {
		return measureFleet(ctx, root, c.fleet)
	}
	sizes, err := numbers(c.sizes)
	if err != nil {
		return err
	}
	if c.lifelike {
		return eachSize(sizes, func(nodes int) error { return printLifelike(ctx, root, nodes, c.speed) })
	}
	rows, err := readRows(c.rows)
	if err != nil {
		return err
	}
	err = eachSize(sizes, func(nodes int) error {
		measured, err := measure(ctx, root, nodes, c)
		if err != nil {
			return err
		}
		rows = with(rows, measured)

		return writeRows(c.rows, rows)
	})
	if err != nil {
		return err
	}

	return errors.Join(report(ctx, root, rows, c.svg), writePage(c.page, rows))
}

// eachSize measures one size after the other.
func eachSize(sizes []int, measure func(nodes int) error) error {
	for _, nodes := range sizes {
		fmt.Fprintf(os.Stderr, "%d nodes …\n", nodes)
		if err := measure(nodes); err != nil {
			return fmt.Errorf("%d nodes: %w", nodes, err)
		}
	}

	return nil
}

// numbers reads the numbers of nodes.
func numbers(text string) ([]int, error) {
	var sizes []int
	if text == "" { // what was measured earlier is printed
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		nodes, err := strconv.Atoi(part)
		if err != nil || nodes < 1 {
			return nil, fmt.Errorf("-sizes: %q is not a number of nodes", part)
		}
		sizes = append(sizes, nodes)
	}

	return sizes, nil
}

// report prints the table, and draws it where a file is named.
func report(ctx context.Context, root string, rows []row, svg string) error {
	fmt.Print(table(rows))
	fmt.Print("\n", further(rows))
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
	if svg == "" {
		return nil
	}

	return os.WriteFile(svg, []byte(draw(rows)), 0o644)
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
