// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Command fleet brings many clusters up, a few at a time: every stack file in a folder is a cluster. One that fails
// stops no other; the exit code is 1 when any failed. It drives the Pulumi CLI through the Automation API.
//
//	go run . -project ../.. -clusters clusters -at-once 4
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/auto"
	"github.com/pulumi/pulumi/sdk/v3/go/auto/optdestroy"
	"github.com/pulumi/pulumi/sdk/v3/go/auto/optup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("fleet", flag.ContinueOnError)
	project := flags.String("project", "../..", "folder with Pulumi.yaml")
	clusters := flags.String("clusters", "clusters", "folder with a stack file for each cluster")
	atOnce := flags.Int("at-once", 4, "how many clusters are changed at the same time")
	destroy := flags.Bool("destroy", false, "take the clusters away")
	if err := flags.Parse(args); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(*clusters, "*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("%s holds no stack files (*.yaml)", *clusters)
	}
	// Once, ahead of all: the runs would otherwise all link the program into the same file.
	build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join("bin", "program"), ".")
	build.Dir = *project
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the program: %w\n%s", err, text)
	}

	results := each(files, max(1, *atOnce), func(file string) result {
		return change(ctx, *project, file, *destroy)
	})
	failed := 0
	for _, r := range results {
		fmt.Fprintln(out, r)
		if r.err != nil {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d clusters failed", failed, len(results))
	}

	return nil
}

// result holds what came of one cluster.
type result struct {
	cluster string
	took    time.Duration
	summary string
	err     error
}

// String returns one line, and the reasons below it where the cluster failed.
func (r result) String() string {
	if r.err != nil {
		return fmt.Sprintf("%-20s failed after %s\n%s", r.cluster, r.took.Round(time.Second), indent(r.err.Error()))
	}

	return fmt.Sprintf("%-20s %s, %s", r.cluster, r.summary, r.took.Round(time.Second))
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")
}

// each runs do for every file, so many at the same time, and returns the results in the order of the files.
func each(files []string, atOnce int, do func(string) result) []result {
	results := make([]result, len(files))
	turns := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i, file := range files {
		all.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			results[i] = do(file)
		})
	}
	all.Wait()

	return results
}

// change brings one cluster to what its stack file says, or takes it away.
func change(ctx context.Context, project, file string, destroy bool) result {
	began := time.Now()
	r := result{cluster: strings.TrimSuffix(filepath.Base(file), ".yaml")}
	r.summary, r.err = apply(ctx, project, r.cluster, file, destroy)
	r.took = time.Since(began)

	return r
}

func apply(ctx context.Context, project, cluster, file string, destroy bool) (string, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	stack, err := auto.UpsertStackLocalSource(ctx, cluster, project)
	if err != nil {
		return "", fmt.Errorf("opening the stack: %w", err)
	}
	if destroy {
		if _, err := stack.Destroy(ctx, optdestroy.ConfigFile(path), optdestroy.Remove()); err != nil {
			return "", reasons(err)
		}

		return "destroyed", nil
	}
	done, err := stack.Up(ctx, optup.ConfigFile(path))
	if err != nil {
		return "", reasons(err)
	}
	var changes []string
	for what, n := range *done.Summary.ResourceChanges {
		changes = append(changes, fmt.Sprintf("%d %s", n, what))
	}
	slices.SortFunc(changes, cmp.Compare[string])

	return strings.Join(changes, ", "), nil
}

// reasons returns what the program and the engine said was wrong. Pulumi's whole output is in the error; what tells why
// stands under Diagnostics.
func reasons(err error) error {
	_, diagnostics, found := strings.Cut(err.Error(), "Diagnostics:\n")
	if !found {
		return err
	}
	for _, next := range []string{"\nOutputs:", "\nResources:", "\nstderr:"} {
		diagnostics, _, _ = strings.Cut(diagnostics, next)
	}

	return errors.New(strings.TrimSpace(diagnostics))
}
