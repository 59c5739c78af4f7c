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
	// Plan of a cluster that is not there yet, Again the plan of one that is, Second the up after the first one, in which
	// the engine writes down the order in which a cluster that lives is changed, NoOp an up with nothing to do.
	Plan, Up, Again, Second, NoOp cost
	// State is the size of the stack's state in bytes.
	State int
	// FirstVM is how long after the command's start the first VM starts.
	FirstVM time.Duration
	// Waits is the longest chain of waits of the site that nothing can shorten, on the lab's clock.
	Waits time.Duration
	// Lab is the memory of the lab's processes at its largest, in MiB; LabCPU is what they took from their start to the end
	// of the last command.
	Lab    float64
	LabCPU time.Duration
	// Speed is how much faster than life the lab's waits were.
	Speed string
	// Provider is the number of calls to the provider plugins in the first up.
	Provider int
	// OneWrite reports whether Pulumi wrote the state once, at the end, and not at every step.
	OneWrite bool
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
	// steps are the lab's steps that take other than what the lab takes for them.
	steps string
	// environment of the commands, beside the bench's own.
	environment []string
}

const stack = "bench"

// nodesPerHost is how many machines of the bench one of the lab's hosts has the memory for.
const nodesPerHost = 200

// measure runs the commands for a cluster of so many nodes in a site of its own.
func measure(ctx context.Context, root string, nodes int, c choice) (row, error) {
	b, err := open(ctx, bench{root: root, speed: c.speed}, nodes)
	if err != nil {
		return row{}, err
	}
	defer b.close()

	measured := row{Nodes: nodes, Speed: c.speed, IsUp: nodes <= c.upTo, OneWrite: nodes > c.writesUpTo}
	if measured.OneWrite {
		b.environment = append(b.environment, "PULUMI_SKIP_CHECKPOINTS=true")
	}
	var out string
	if measured.Plan, out, err = b.pulumi(ctx, "preview", "--json"); err != nil {
		return measured, err
	}
	if measured.Resources, measured.Managed, err = count(out); err != nil || !measured.IsUp {
		return measured, err
	}
	began := time.Now()
	if measured.Up, err = b.firstUp(ctx, &measured); err != nil {
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
	if measured.Second, _, err = b.pulumi(ctx, "up", "--yes", "--skip-preview", "--expect-no-changes"); err != nil {
		return measured, err
	}
	if measured.NoOp, _, err = b.pulumi(ctx, "up", "--yes", "--skip-preview", "--expect-no-changes"); err != nil {
		return measured, err
	}
	measured.Lab, measured.LabCPU = b.labUsage()

	return measured, nil
}

// open makes a site with a project of so many nodes and a stack without resources.
func open(ctx context.Context, as bench, nodes int) (*bench, error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	b := &as
	b.dir = dir
	if err := b.prepare(nodes); err != nil {
		b.close()

		return nil, err
	}
	if _, err := b.lab(ctx, "exec", "--", "pulumi", "stack", "init", stack); err != nil {
		b.close()

		return nil, err
	}

	return b, nil
}

// close stops the site and removes it.
func (b *bench) close() {
	b.stop()
	_ = os.RemoveAll(b.dir) // a folder for this run
}

// firstUp brings the cluster up, and counts the calls of providers.
func (b *bench) firstUp(ctx context.Context, into *row) (cost, error) {
	file, usual := filepath.Join(b.dir, "calls"), b.environment
	b.environment = append(usual[:len(usual):len(usual)], "LAB_CALLS="+file)
	defer func() { b.environment = usual }()
	took, _, err := b.pulumi(ctx, "up", "--yes", "--skip-preview")
	if err != nil {
		return took, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return took, err
	}
	var calls map[string]map[string]int
	if err := json.Unmarshal(text, &calls); err != nil {
		return took, fmt.Errorf("reading the calls of providers: %w", err)
	}
	for _, provider := range calls {
		for _, method := range []string{"Check", "Diff", "Create", "Read", "Update", "Invoke"} {
			into.Provider += provider[method]
		}
	}

	return took, nil
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
		times.Parallel = parallel()
	}
	into.Lifelike = makespan.Of(resources, "bench", "n-0001", times)

	return nil
}

// parallel returns how many steps Pulumi takes at a time: what the environment says, else four for each core.
func parallel() int {
	if given, err := strconv.Atoi(os.Getenv("PULUMI_PARALLEL")); err == nil && given > 0 {
		return given
	}

	return 4 * runtime.GOMAXPROCS(0)
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
	hosts := make([]string, (nodes+nodesPerHost-1)/nodesPerHost)
	for i := range hosts {
		hosts[i] = fmt.Sprintf("pve%d: {datastore: local-lvm}", i+1)
	}
	fmt.Fprintf(&b, `config:
  talos-proxmox:proxmox:
    endpoint: https://pve1.example.com:8006
    hosts: {%s}
  talos-proxmox:cluster: {name: bench, vip: 10.30.255.1, allowSchedulingOnControlPlanes: true, podSubnets: [10.128.0.0/12]}
  talos-proxmox:talos: {version: v1.12.4}
  talos-proxmox:kubernetes: {version: v1.35.0}
  talos-proxmox:defaults:
    all:
      cpu: 2
      memory: 2048
      osDisk: {size: 10}
      networks: {lan: {bridge: vmbr0, subnet: 10.30.0.0/16, gateway: 10.30.255.254}}
  talos-proxmox:lifecycle: {readyTimeout: 60m, applyTimeout: 60m}
  talos-proxmox:nodes:
`, strings.Join(hosts, ", "))
	planes := min(3, nodes)
	if nodes < 3 {
		planes = 1
	}
	for i := range nodes {
		role := "worker"
		if i < planes {
			role = "controlplane"
		}
		fmt.Fprintf(&b, "    n-%04d: {role: %s, host: pve%d, vmId: %d, networks: {lan: {address: 10.30.%d.%d}}}\n",
			i+1, role, i%len(hosts)+1, 1001+i, (i+1)/250, (i+1)%250+1)
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
	own := []string{args[0], "--site", filepath.Join(b.dir, "site"), "--speed", b.speed}
	if args[0] == "exec" {
		own = append(own, "--providers", "standin", "--steps", b.steps)
	}
	args = append(own, args[1:]...)
	cmd := exec.CommandContext(ctx, filepath.Join(b.root, "bin", "lab"), args...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = b.dir, &stdout, &stderr
	cmd.Env = append(os.Environ(), b.environment...)
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

// labUsage returns what the processes that belong to the site have taken: the memory of each at its largest, in MiB, and
// their CPU time.
func (b *bench) labUsage() (memory float64, cpu time.Duration) {
	found, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, 0
	}
	for _, path := range found {
		cmdline, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(cmdline, []byte(b.dir)) {
			continue
		}
		process := filepath.Dir(path)
		status, err := os.ReadFile(filepath.Join(process, "status"))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(status)) {
			if text, ok := strings.CutPrefix(line, "VmHWM:"); ok {
				kib, err := strconv.Atoi(strings.Fields(text)[0])
				if err == nil {
					memory += float64(kib) / 1024
				}
			}
		}
		stat, err := os.ReadFile(filepath.Join(process, "stat"))
		if err == nil {
			cpu += cpuOf(string(stat))
		}
	}

	return memory, cpu
}

// cpuOf reads the CPU time of a process from its /proc/PID/stat: fields 14 and 15, in hundredths of a second. Its name, the
// second field, may have blanks and ends with the last bracket.
func cpuOf(stat string) time.Duration {
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	if len(fields) < 13 {
		return 0
	}
	var ticks int
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			return 0
		}
		ticks += n
	}

	return time.Duration(ticks) * 10 * time.Millisecond
}
