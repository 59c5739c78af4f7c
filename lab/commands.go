// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package lab

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/auto"

	"github.com/talos-proxmox/talos-proxmox/lab/env"
)

// Result describes how a command ended.
type Result struct {
	Stdout, Stderr string
	Code           int
}

// Env returns the environment of a command whose world is the lab, "NAME=value" each.
func (l *Lab) Env() []string { return l.env.List() }

// Command prepares a command that runs in dir with the lab as its environment.
func (l *Lab) Command(dir, name string, args ...string) *exec.Cmd {
	l.t.Helper()

	path, err := l.env.LookPath(name)
	if err != nil {
		l.t.Fatalf("lab: %v", err)
	}
	cmd := exec.CommandContext(l.t.Context(), path, args...) // G204: what the test asks for
	cmd.Dir, cmd.Env = dir, l.Env()

	return cmd
}

// Exec runs a command in dir with the lab as its environment and returns how it ended; an exit code is no failure
// of the test.
func (l *Lab) Exec(dir, name string, args ...string) Result {
	l.t.Helper()

	var stdout, stderr bytes.Buffer
	cmd := l.Command(dir, name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr

	files := env.RememberStackFiles(dir, args)
	defer files.ForgetSalt()

	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		l.t.Fatalf("lab: running %s: %v", name, err)
	}

	return Result{Stdout: stdout.String(), Stderr: stderr.String(), Code: cmd.ProcessState.ExitCode()}
}

// Pulumi runs the Pulumi CLI on the project in dir and returns its standard output. The test fails when the
// command does.
func (l *Lab) Pulumi(dir string, args ...string) string {
	l.t.Helper()

	r := l.Exec(dir, "pulumi", append(args, "--non-interactive")...)
	if r.Code != 0 {
		l.t.Fatalf("pulumi %s: exit code %d\n%s%s", strings.Join(args, " "), r.Code, r.Stdout, r.Stderr)
	}

	return r.Stdout
}

// Workspace makes the lab the world of Pulumi's Automation API, for programs inside the test. Only the engine and
// its providers are in that world: code of the program itself that dials runs in the test's process, outside of it.
func (l *Lab) Workspace() []auto.LocalWorkspaceOption {
	l.t.Helper()

	// The Automation API wants the directory above the one that has the CLI.
	root, bin := filepath.Split(string(l.bin))
	if bin != "bin" {
		l.t.Fatalf("lab: the Automation API needs the tools in a directory called bin, not %s", l.bin)
	}
	pulumi, err := auto.NewPulumiCommand(&auto.PulumiCommandOptions{Root: filepath.Clean(root)})
	if err != nil {
		l.t.Fatalf("lab: %v", err)
	}

	vars := map[string]string{}
	for name, value := range l.env {
		if own, ok := os.LookupEnv(name); !ok || own != value {
			vars[name] = value
		}
	}
	for _, name := range []string{"ALL_PROXY", "all_proxy"} { // it would lead past the lab
		vars[name] = ""
	}

	return []auto.LocalWorkspaceOption{auto.Pulumi(pulumi), auto.EnvVars(vars)}
}

// tail returns the end of a log.
func tail(path string) string {
	const lines = 40

	content, err := os.ReadFile(path) // G304: in the test's temporary directory
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(content)), "\n")

	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
