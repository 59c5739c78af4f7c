// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Command drift names what somebody changed by hand on the nodes of a stack since its last up, in what the
// providers do not look at: Talos versions, schematics, machine configurations, members of etcd, nodes of
// Kubernetes. It ends with 0 when all is as the stack has it, with 1 when something is not, and with 2
// when it could not look. What the nodes are supposed to be, and the credentials, are in the stack's
// state, which it has Pulumi export; nothing secret is printed or written.
//
//	go run ./cmd/drift [-dir DIRECTORY] [-state FILE] STACK
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/health"
	"github.com/talos-proxmox/talos-proxmox/internal/talosapi"
)

func main() {
	dir := flag.String("dir", ".", "the project directory")
	file := flag.String("state", "", "a file with the output of `pulumi stack export --show-secrets`; - for standard input; asks Pulumi when empty")
	name := flag.String("stack", "", "the stack")
	flag.Parse()
	if *name == "" {
		*name = flag.Arg(0)
	}
	drifted, err := run(context.Background(), *dir, *file, *name, os.Stdout)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "drift:", err)
		os.Exit(2)
	case drifted:
		os.Exit(1)
	}
}

// run prints what was changed, cluster by cluster, and reports whether anything was.
func run(ctx context.Context, dir, file, stack string, out io.Writer) (bool, error) {
	exported, err := export(ctx, dir, file, stack)
	if err != nil {
		return false, err
	}
	clusters, err := readState(exported)
	if err != nil {
		return false, err
	}
	drifted := false
	for _, c := range clusters {
		lines, err := look(ctx, c)
		if err != nil {
			return false, fmt.Errorf("cluster %q: %w", c.Name, err)
		}
		for _, line := range lines {
			fmt.Fprintln(out, line)
		}
		drifted = drifted || len(lines) > 0
		if len(lines) == 0 {
			fmt.Fprintf(out, "cluster %q: all %d nodes are as the stack has them\n", c.Name, len(c.nodes))
		}
	}

	return drifted, nil
}

// callTimeout bounds each question to a node.
const callTimeout = 15 * time.Second

func look(ctx context.Context, c clusterState) ([]string, error) {
	remote, err := talosapi.NewRemote(c.talosconfig, c.Cluster)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller names the cluster
	}
	defer remote.Close() //nolint:errcheck // nothing was written

	//nolint:wrapcheck // the caller names the cluster
	return health.Drift(ctx, remote, c.Cluster, c.nodes, cluster.PollOptions{Call: callTimeout})
}

// export returns the stack's state with its secrets.
func export(ctx context.Context, dir, file, stack string) ([]byte, error) {
	switch {
	case file == "-":
		return io.ReadAll(os.Stdin) //nolint:wrapcheck // says everything
	case file != "":
		return os.ReadFile(file) //nolint:wrapcheck // says everything
	case stack == "":
		return nil, errors.New("name a stack: go run ./cmd/drift STACK")
	}
	cmd := exec.CommandContext(ctx, "pulumi", "stack", "export", "--show-secrets", "--stack", stack)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("pulumi stack export --stack %s: %w: %s", stack, err, strings.TrimSpace(stderr.String()))
	}

	return stdout.Bytes(), nil
}
