// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/talos-proxmox/talos-proxmox/tests/makespan"
)

// cost holds what one command of Pulumi takes.
type cost struct {
	// Wall of the whole command; CPU and Memory (MiB, at its largest) of the program alone, since engine and
	// providers are not ours.
	Wall, CPU time.Duration
	Memory    float64
}

// row holds what a cluster of so many nodes costs.
type row struct {
	Nodes int
	// Resources in the stack, and those of them that a provider plugin manages.
	Resources, Managed int
	// Plan of a cluster that is not there yet, Again the plan of one that is, NoOp an up with nothing to do.
	Plan, Up, Again, NoOp cost
	// State is the size of the stack's state in bytes.
	State int
	// FirstVM is how long after the command's start the first VM starts.
	FirstVM time.Duration
	// Waits is the longest chain of waits of the site that nothing can shorten, on the lab's clock.
	Waits time.Duration
	// Lab is the memory of the lab's processes, in MiB.
	Lab float64
	// Calls are the operations of hosts and nodes in an up, as the trace has them: tasks of Proxmox VE and what Talos is told.
	Calls int
	// Lifelike is how the creation goes with the times that steps take on real machines.
	Lifelike makespan.Plan
	// IsUp reports whether the cluster was brought up, or only planned.
	IsUp bool
}

// bench measures commands in a site with a project.
type bench struct {
	root, dir, speed string
}

const stack = "bench"

// measure runs the commands for a cluster of so many nodes in a site of its own.
func measure(ctx context.Context, root string, nodes int, up bool, speed string) (row, error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return row{}, err
	}
	b := &bench{root: root, dir: dir, speed: speed}
	defer os.RemoveAll(dir) //nolint:errcheck // a folder for this run
	defer b.stop()
	if err := b.prepare(nodes); err != nil {
		return row{}, err
	}
	if _, err := b.lab(ctx, "exec", "--", "pulumi", "stack", "init", stack); err != nil {
		return row{}, err
	}

	measured := row{Nodes: nodes, IsUp: up}
	var out string
	if measured.Plan, out, err = b.pulumi(ctx, "preview", "--json"); err != nil {
		return measured, err
	}
	if measured.Resources, measured.Managed, err = count(out); err != nil || !up {
		return measured, err
	}
	began := time.Now()
	if measured.Up, _, err = b.pulumi(ctx, "up", "--yes", "--skip-preview"); err != nil {
		return measured, err
	}
	if err := b.readTrace(ctx, began, &measured); err != nil {
		return measured, err
	}
	if err := b.readState(ctx, &measured); err != nil {
		return measured, err
	}
	if measured.Again, _, err = b.pulumi(ctx, "preview", "--expect-no-changes"); err != nil {
		return measured, err
	}
	if measured.NoOp, _, err = b.pulumi(ctx, "up", "--yes", "--skip-preview", "--expect-no-changes"); err != nil {
		return measured, err
	}
	measured.Lab = b.labMemory()

	return measured, nil
}

// readState reads how large the state is, and from the order that the engine was told, how long a creation takes with
// the times of real machines and as many steps at a time as the engine takes here.
func (b *bench) readState(ctx context.Context, into *row) error {
	state, err := b.lab(ctx, "exec", "--", "pulumi", "stack", "export", "--stack", stack)
	if err != nil {
		return err
	}
	into.State = len(state)
	resources, err := makespan.ReadState(state)
	if err != nil {
		return err
	}
	times := makespan.Lifelike()
	if into.Nodes > 33 {
		times.Parallel = 4 * runtime.GOMAXPROCS(0) // Pulumi's default
	}
	into.Lifelike = makespan.Of(resources, "bench", "n-0001", times)

	return nil
}

// prepare writes the project. Its program starts the real one and notes what that took.
func (b *bench) prepare(nodes int) error {
	project, err := os.ReadFile(filepath.Join(b.root, "Pulumi.yaml"))
	if err != nil {
		return err
	}
	launcher := fmt.Sprintf(launcherSource, filepath.Join(b.root, "bin", "program"), filepath.Join(b.dir, "usage"))
	for name, text := range map[string]string{
		"Pulumi.yaml": string(project), "bench.yaml": stackFile(nodes), "go.mod": "module launcher\n\ngo 1.26\n", "main.go": launcher,
	} {
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}

	return nil
}

const launcherSource = `package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

func main() {
	cmd := exec.Command(%q)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	_ = os.WriteFile(%q, []byte(fmt.Sprint(cpu.Nanoseconds(), " ", usage.Maxrss)), 0o600)
	if err != nil {
		os.Exit(1)
	}
}
`

// stackFile describes three control planes, or one, and workers for the rest.
func stackFile(nodes int) string {
	var b strings.Builder
	b.WriteString(`config:
  talos-proxmox:proxmox:
    endpoint: https://pve1.example.com:8006
    hosts: {pve1: {datastore: local-lvm}}
  talos-proxmox:cluster: {name: bench, vip: 10.30.255.1, allowSchedulingOnControlPlanes: true, podSubnets: [10.128.0.0/12]}
  talos-proxmox:talos: {version: v1.12.4}
  talos-proxmox:kubernetes: {version: v1.35.0}
  talos-proxmox:defaults:
    all:
      host: pve1
      cpu: 2
      memory: 2048
      osDisk: {size: 10}
      networks: {lan: {bridge: vmbr0, subnet: 10.30.0.0/16, gateway: 10.30.255.254}}
  talos-proxmox:lifecycle: {readyTimeout: 60m, applyTimeout: 60m}
  talos-proxmox:nodes:
`)
	planes := min(3, nodes)
	if nodes < 3 {
		planes = 1
	}
	for i := range nodes {
		role := "worker"
		if i < planes {
			role = "controlplane"
		}
		fmt.Fprintf(&b, "    n-%04d: {role: %s, vmId: %d, networks: {lan: {address: 10.30.%d.%d}}}\n", i+1, role, 1001+i, (i+1)/250, (i+1)%250+1)
	}

	return b.String()
}

// count counts the resources of a plan.
func count(plan string) (all, managed int, err error) {
	var steps struct {
		Steps []struct {
			URN string `json:"urn"`
		} `json:"steps"`
	}
	if err := json.Unmarshal([]byte(plan), &steps); err != nil {
		return 0, 0, fmt.Errorf("reading the plan: %w", err)
	}
	for _, s := range steps.Steps {
		all++
		kind := s.URN[strings.LastIndex(s.URN[:strings.LastIndex(s.URN, "::")], "::")+2:]
		kind = kind[strings.LastIndex(kind, "$")+1:]
		if !strings.HasPrefix(kind, "pulumi:") && !strings.HasPrefix(kind, "talos-proxmox:") {
			managed++
		}
	}

	return all, managed, nil
}

// pulumi runs one command and returns what it took.
func (b *bench) pulumi(ctx context.Context, args ...string) (cost, string, error) {
	_ = os.Remove(filepath.Join(b.dir, "usage")) // a command may run no program
	began := time.Now()
	out, err := b.lab(ctx, append([]string{"exec", "--", "pulumi"}, append(args,
		"--stack", stack, "--config-file", "bench.yaml", "--non-interactive")...)...)
	c := cost{Wall: time.Since(began)}
	if err != nil {
		return c, out, err
	}
	text, err := os.ReadFile(filepath.Join(b.dir, "usage"))
	if err != nil {
		return c, out, err
	}
	var cpu, kib int64
	if _, err := fmt.Sscan(string(text), &cpu, &kib); err != nil {
		return c, out, fmt.Errorf("reading what the program took: %w", err)
	}
	c.CPU, c.Memory = time.Duration(cpu), float64(kib)/1024

	return c, out, nil
}

// lab runs a command of the lab and returns what it printed.
func (b *bench) lab(ctx context.Context, args ...string) (string, error) {
	args = append([]string{args[0], "--site", filepath.Join(b.dir, "site"), "--speed", b.speed}, args[1:]...)
	if args[0] == "exec" {
		args = append(args[:5:5], append([]string{"--providers", "standin"}, args[5:]...)...)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(b.root, "bin", "lab"), args...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = b.dir, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s: %w\n%s%s", strings.Join(args, " "), err, stdout.String(), stderr.String())
	}

	return stdout.String(), nil
}

func (b *bench) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := b.lab(ctx, "stop"); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// labMemory returns the memory of the processes that belong to the site, in MiB.
func (b *bench) labMemory() float64 {
	found, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0
	}
	total := 0.0
	for _, path := range found {
		cmdline, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(cmdline, []byte(b.dir)) {
			continue
		}
		status, err := os.ReadFile(filepath.Join(filepath.Dir(path), "status"))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(status)) {
			if text, ok := strings.CutPrefix(line, "VmRSS:"); ok {
				kib, err := strconv.Atoi(strings.Fields(text)[0])
				if err == nil {
					total += float64(kib) / 1024
				}
			}
		}
	}

	return total
}
