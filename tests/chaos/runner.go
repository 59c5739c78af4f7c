// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const stackName = "chaos"

// Runner runs scripts in a lab site of its own.
type Runner struct {
	// Root is the repository, whose bin/ has the tools.
	Root string
	// Dir is an empty folder for the site and the project.
	Dir string
	// Log gets a line for every command.
	Log func(format string, args ...any)

	model Model
	file  string
	hand  *proxmox
	extra map[int]bool // VMs, by id, that were given a disk by hand
	came  bool         // a command succeeded
}

// result holds how a command ended.
type result struct {
	stdout, stderr string
	exit           int
}

func (r result) text() string { return r.stdout + r.stderr }

// Run runs a script from an empty site and returns what the judge found, with the step that it was found
// after; then it heals whatever the script left broken and returns what keeps the cluster from being as the
// stack file says. The error is about the lab, not about the product.
func (r *Runner) Run(ctx context.Context, script Script) ([]string, error) {
	if err := r.prepare(script); err != nil {
		return nil, err
	}
	defer r.stop()
	if made := r.pulumi(ctx, "stack", "init", stackName); made.exit != 0 {
		return nil, fmt.Errorf("making the stack: %s", made.text())
	}
	problems, err := r.command(ctx, Step{Verb: Run, Args: []string{"up"}})
	if err == nil && len(problems) == 0 && !r.came {
		return nil, errors.New("the first up failed, so that there is nothing to judge")
	}
	for i := 0; err == nil && len(problems) == 0 && i < len(script.Steps); i++ {
		problems, err = r.step(ctx, script.Steps[i])
		for at := range problems {
			problems[at] = fmt.Sprintf("step %d (%s): %s", i+1, script.Steps[i], problems[at])
		}
	}
	if err != nil || len(problems) > 0 {
		return problems, err
	}
	problems, err = r.heal(ctx)
	r.Log("%d steps are done and healed with %d problems", len(script.Steps), len(problems))

	return problems, err
}

// prepare makes the project: the repository's project file and a program that is built already.
func (r *Runner) prepare(script Script) error {
	project := filepath.Join(r.Dir, "project")
	if err := os.MkdirAll(project, 0o700); err != nil {
		return err
	}
	content, err := os.ReadFile(filepath.Join(r.Root, "Pulumi.yaml"))
	if err != nil {
		return err
	}
	program := filepath.Join(r.Root, "bin", "program")
	files := map[string]string{
		"Pulumi.yaml": string(content),
		"go.mod":      "module launcher\n\ngo 1.26\n",
		"main.go": "package main\n\nimport (\n\t\"os\"\n\t\"syscall\"\n)\n\n" +
			"func main() { panic(syscall.Exec(" + strconv.Quote(program) + ", os.Args, os.Environ())) }\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(project, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	r.model, r.file, r.hand, r.came = NewModel(script.Nodes), filepath.Join(project, "chaos.yaml"), nil, false
	r.extra = map[int]bool{}

	return r.write()
}

func (r *Runner) write() error { return os.WriteFile(r.file, []byte(r.model.StackFile()), 0o600) }

// step does one step and returns what the judge found.
func (r *Runner) step(ctx context.Context, step Step) ([]string, error) {
	switch step.Verb {
	case Edit:
		model, err := r.model.Apply(step)
		if err != nil {
			return nil, err
		}
		r.model = model

		return nil, r.write()
	case Hand:
		return nil, r.byHandStep(ctx, step)
	case Fault:
		return nil, r.mustLab(ctx, append([]string{"fault", "add"}, step.Args...)...)
	case Clear:
		return nil, r.mustLab(ctx, "fault", "clear")
	default:
		return r.command(ctx, step)
	}
}

// command runs Pulumi and judges what came of it.
func (r *Runner) command(ctx context.Context, step Step) ([]string, error) {
	o := Observation{Command: step, Wanted: r.model}
	var err error
	if o.Before, o.StateBefore, err = r.look(ctx); err != nil {
		return nil, err
	}
	args := slices.Clone(step.Args)
	if kill := step.Value("kill"); kill != "" {
		if err := r.mustLab(ctx, "fault", "add", "kill", "nth="+kill); err != nil {
			return nil, err
		}
		args = slices.DeleteFunc(args, func(a string) bool { return strings.HasPrefix(a, "kill=") })
	}
	args = append(args, "--stack", stackName, "--config-file", r.file, "--non-interactive")
	if !step.Has("preview") {
		args = append(args, "--yes", "--skip-preview")
	}

	o.From = time.Now()
	ended := r.pulumi(ctx, args...)
	o.To, o.Exit = time.Now(), ended.exit
	r.came = r.came || o.Exit == 0
	o.Killed = strings.Contains(ended.stderr, "lab: the command is killed ")
	o.Changed = changed(ended.stdout)
	r.Log("%s: exit code %d after %s%s", step, o.Exit, o.To.Sub(o.From).Round(100*time.Millisecond), firstError(ended))
	if o.Killed {
		r.pulumi(ctx, "cancel", "--stack", stackName, "--yes") // there may be no lock
	}
	if strings.Contains(ended.text(), "snapshot integrity") {
		// The engine writes such a state where it leaves out what others belong to.
		r.pulumi(ctx, "state", "repair", "--stack", stackName, "--yes")
	}
	if step.Value("kill") != "" {
		if err := r.mustLab(ctx, "fault", "clear"); err != nil { // it may not have come to that operation
			return nil, err
		}
	}
	if o.After, o.StateAfter, err = r.look(ctx); err != nil {
		return nil, err
	}
	if o.Events, err = r.trace(ctx); err != nil {
		return nil, err
	}

	return Judge(o), nil
}

// changed reports whether Pulumi says that it changed anything.
func changed(output string) bool {
	_, summary, ok := strings.Cut(output, "\nResources:\n")
	if !ok {
		return false
	}
	for _, word := range []string{" created", " updated", " replaced", " deleted"} {
		if strings.Contains(summary, word) {
			return true
		}
	}

	return false
}

// firstError returns the first line that tells why a command failed.
func firstError(r result) string {
	for line := range strings.Lines(r.text()) {
		if r.exit != 0 && strings.Contains(line, "error: ") {
			return ": " + strings.TrimSpace(line)
		}
	}

	return ""
}

// heal brings the cluster to what the stack file says with at most two ups, and finds what is left to do.
func (r *Runner) heal(ctx context.Context) ([]string, error) {
	if err := r.mustLab(ctx, "fault", "clear"); err != nil {
		return nil, err
	}
	if err := r.takeDisksOut(ctx); err != nil {
		return nil, err
	}
	up := Step{Verb: Run, Args: []string{"up"}}
	var last result
	for range 2 {
		// Of what is in Kubernetes nothing can be read while its API is away.
		r.pulumi(ctx, "refresh", "--target=**$proxmoxve:VM/**", "--stack", stackName, "--config-file", r.file,
			"--yes", "--skip-preview", "--non-interactive")
		problems, err := r.command(ctx, up)
		if err != nil || len(problems) > 0 {
			return problems, err
		}
		r.pulumi(ctx, "refresh", "--stack", stackName, "--config-file", r.file, "--clear-pending-creates",
			"--yes", "--skip-preview", "--non-interactive")
		last = r.pulumi(ctx, "preview", "--stack", stackName, "--config-file", r.file, "--expect-no-changes", "--non-interactive")
		if last.exit == 0 {
			break
		}
	}
	if last.exit != 0 {
		return []string{"heal: after two ups the preview is not empty:\n" + last.text()}, nil
	}
	site, _, err := r.look(ctx)
	if err != nil {
		return nil, err
	}
	var problems []string
	for _, node := range r.model.Nodes {
		if why := missing(site, node); why != "" {
			problems = append(problems, fmt.Sprintf("heal: node %s %s", node, why))
		}
	}

	return problems, nil
}

// look returns the site and the stack's state.
func (r *Runner) look(ctx context.Context) (Site, []Resource, error) {
	var site Site
	said := r.lab(ctx, "status", "--json")
	if err := json.Unmarshal([]byte(said.stdout), &site); err != nil {
		return site, nil, fmt.Errorf("reading the site: %w: %s", err, said.text())
	}
	var state struct {
		Deployment struct {
			Resources []struct {
				URN     string         `json:"urn"`
				Type    string         `json:"type"`
				Outputs map[string]any `json:"outputs"`
			} `json:"resources"`
		} `json:"deployment"`
	}
	exported := r.pulumi(ctx, "stack", "export", "--stack", stackName)
	if err := json.Unmarshal([]byte(exported.stdout), &state); err != nil {
		return site, nil, fmt.Errorf("reading the state: %w: %s", err, exported.text())
	}
	var resources []Resource
	for _, res := range state.Deployment.Resources {
		found := Resource{URN: res.URN, Type: res.Type}
		if id, ok := res.Outputs["vmId"].(float64); ok && strings.HasPrefix(res.Type, "proxmoxve:VM/") {
			found.VMID = int(id)
		}
		resources = append(resources, found)
	}

	return site, resources, nil
}

// trace returns what happened at the site so far.
func (r *Runner) trace(ctx context.Context) ([]Event, error) {
	said := r.lab(ctx, "trace", "--json")
	var events []Event
	decoder := json.NewDecoder(strings.NewReader(said.stdout))
	for decoder.More() {
		var e Event
		if err := decoder.Decode(&e); err != nil {
			return nil, fmt.Errorf("reading the trace: %w", err)
		}
		events = append(events, e)
	}
	slices.SortStableFunc(events, func(a, b Event) int { return a.Start.Compare(b.Start) })

	return events, nil
}

func (r *Runner) site() string { return filepath.Join(r.Dir, "site") }

// lab runs one of the lab's own commands.
func (r *Runner) lab(ctx context.Context, args ...string) result {
	return r.run(ctx, slices.Insert(slices.Clone(args), 1, "--site", r.site())...)
}

func (r *Runner) mustLab(ctx context.Context, args ...string) error {
	if said := r.lab(ctx, args...); said.exit != 0 {
		return fmt.Errorf("lab %s: %s", strings.Join(args, " "), said.text())
	}

	return nil
}

// exec runs a command in the lab.
func (r *Runner) exec(ctx context.Context, args ...string) result {
	return r.run(ctx, append([]string{"exec", "--site", r.site(), "--providers", "standin", "--"}, args...)...)
}

func (r *Runner) pulumi(ctx context.Context, args ...string) result {
	return r.exec(ctx, append([]string{"pulumi"}, args...)...)
}

func (r *Runner) run(ctx context.Context, args ...string) result {
	cmd := exec.CommandContext(ctx, filepath.Join(r.Root, "bin", "lab"), args...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = filepath.Join(r.Dir, "project"), &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return result{stdout: stdout.String(), stderr: stderr.String()}
	case errors.As(err, &exit):
		return result{stdout: stdout.String(), stderr: stderr.String(), exit: exit.ExitCode()}
	default:
		return result{stderr: err.Error(), exit: -1}
	}
}

// stop ends the lab. The run's own context may be done by now.
func (r *Runner) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r.lab(ctx, "stop")
}
