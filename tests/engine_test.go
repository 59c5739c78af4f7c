// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// site runs a lab site of its own, with a copy of the project beside it, so that tests run side by side
// and leave nothing behind in the repository.
type site struct {
	t       *testing.T
	root    string // the repository
	project string // the copy
	dir     string // the site

	own       []string // variables that commands find in place of the lab's
	providers string   // who does the providers' work, as --providers says it; "" for the stand-ins
}

// result holds how a command ended.
type result struct {
	stdout, stderr string
	code           int
}

func (r result) all() string { return r.stdout + r.stderr }

// heavy leaves out what takes minutes, but for `make e2e`.
func heavy(t *testing.T) {
	t.Helper()

	if os.Getenv("E2E") != "full" {
		t.Skip("skipped: takes minutes; `make e2e` runs it")
	}
}

// newSite starts with nothing; the lab starts with the first command. The program is the one that
// `make tools` built, so that a command of Pulumi's takes seconds; [newcomersSite] lets Pulumi build it.
func newSite(t *testing.T) *site {
	t.Helper()

	s := newcomersSite(t)
	s.copyProject(s.root, filepath.Join(s.root, "bin", "program"))
	for _, dir := range []string{"examples", "schema"} {
		require.NoError(t, os.CopyFS(filepath.Join(s.project, dir), os.DirFS(filepath.Join(s.root, dir))))
	}

	return s
}

// copyProject makes the site's project a copy of the one in a directory: its project file and its stack
// files, with a program that is built already.
func (s *site) copyProject(from, program string) {
	s.t.Helper()

	s.project = filepath.Join(s.t.TempDir(), "project")
	require.NoError(s.t, os.Mkdir(s.project, 0o700))

	files, err := filepath.Glob(filepath.Join(from, "Pulumi*.yaml"))
	require.NoError(s.t, err)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(s.t, err)
		require.NoError(s.t, os.WriteFile(filepath.Join(s.project, filepath.Base(file)), content, 0o600))
	}

	// Pulumi's Go host has no way to be given a binary that every version of it knows, so what it builds
	// is a program that becomes the real one.
	for name, content := range map[string]string{
		"go.mod": "module launcher\n\ngo 1.26\n",
		"main.go": "package main\n\nimport (\n\t\"os\"\n\t\"syscall\"\n)\n\n" +
			"func main() { panic(syscall.Exec(" + strconv.Quote(program) + ", os.Args, os.Environ())) }\n",
	} {
		require.NoError(s.t, os.WriteFile(filepath.Join(s.project, name), []byte(content), 0o600))
	}
}

// build compiles one of the tests' own programs.
func (s *site) build(program string) string {
	s.t.Helper()

	out := filepath.Join(s.t.TempDir(), filepath.Base(program))
	cmd := exec.CommandContext(s.t.Context(), "go", "build", "-o", out, ".")
	cmd.Dir = filepath.Join(s.root, program) // it may be a module of its own
	output, err := cmd.CombinedOutput()
	require.NoErrorf(s.t, err, "building %s: %s", program, output)

	return out
}

// newcomersSite returns a site for the project as it is in the repository; one test at a time uses it.
func newcomersSite(t *testing.T) *site {
	t.Helper()

	root, err := filepath.Abs("..")
	require.NoError(t, err)
	for _, tool := range []string{"lab", "pulumi", "pulumi-language-go", "lab-kubernetes", "kubectl", "program", "tpx"} {
		require.FileExists(t, filepath.Join(root, "bin", tool), "run make tools")
	}

	s := &site{t: t, root: root, project: root, dir: filepath.Join(t.TempDir(), "site")}
	t.Cleanup(func() {
		// The test's own context is done by now.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()

		out, err := exec.CommandContext(ctx, filepath.Join(root, "bin", "lab"), "stop", "--site", s.dir).CombinedOutput()
		if err != nil {
			t.Logf("stopping the lab: %v\n%s", err, out)
		}
		if t.Failed() {
			s.tail("serve.log")
		}
	})

	return s
}

// tail logs the end of one of the site's logs.
func (s *site) tail(name string) {
	matches, _ := filepath.Glob(filepath.Join(s.dir, "*.log"))
	if len(matches) == 0 {
		matches = []string{filepath.Join(s.dir, name)}
	}
	for _, path := range matches {
		content, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		lines := bytes.Split(content, []byte("\n"))
		s.t.Logf("the end of %s:\n%s", filepath.Base(path), bytes.Join(lines[max(0, len(lines)-40):], []byte("\n")))
	}
}

// command returns a command in the lab.
func (s *site) command(command ...string) *exec.Cmd {
	providers := s.providers
	if providers == "" {
		providers = "standin"
	}
	args := []string{"exec", "--site", s.dir, "--providers", providers, "--"}
	if len(s.own) > 0 {
		args = append(append(args, "env"), s.own...)
	}
	args = append(args, command...)

	return exec.CommandContext(s.t.Context(), filepath.Join(s.root, "bin", "lab"), args...)
}

// try runs a command in the lab and returns how it ended.
func (s *site) try(command ...string) result {
	s.t.Helper()

	return s.run(s.command(command...))
}

// lab runs one of the lab's own commands.
func (s *site) lab(args ...string) result {
	s.t.Helper()

	args = slices.Insert(args, 1, "--site", s.dir)

	return s.run(exec.CommandContext(s.t.Context(), filepath.Join(s.root, "bin", "lab"), args...))
}

func (s *site) run(cmd *exec.Cmd) result {
	s.t.Helper()

	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.project, &stdout, &stderr

	started := time.Now()
	err := cmd.Run()
	s.t.Logf("%s: %s", strings.Join(cmd.Args[1:], " "), time.Since(started).Round(100*time.Millisecond))

	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(s.t, err)
	}

	return result{stdout: stdout.String(), stderr: stderr.String(), code: cmd.ProcessState.ExitCode()}
}

// must runs a command in the lab that has to succeed.
func (s *site) must(command ...string) result {
	s.t.Helper()

	r := s.try(command...)
	require.Zerof(s.t, r.code, "%s\n%s", strings.Join(command, " "), r.all())

	return r
}

// stackFile copies a stack file, edited, out of the repository and returns its path.
func (s *site) stackFile(path string, edits ...string) string {
	s.t.Helper()

	content, err := os.ReadFile(filepath.Join(s.project, path))
	require.NoError(s.t, err)

	text := string(content)
	for i := 0; i+1 < len(edits); i += 2 {
		require.Containsf(s.t, text, edits[i], "%s has changed: adapt the test", path)
		text = strings.ReplaceAll(text, edits[i], edits[i+1])
	}

	copied := filepath.Join(s.t.TempDir(), filepath.Base(path))
	require.NoError(s.t, os.WriteFile(copied, []byte(text), 0o600))

	return copied
}

// create makes a stack of that name.
func (s *site) create(stack string) {
	s.t.Helper()
	s.must("pulumi", "stack", "init", stack)
}

// status holds what the lab says of its site.
type status struct {
	VMs []struct {
		VMID   int    `json:"vmid"`
		Name   string `json:"name"`
		Host   string `json:"host"`
		Status string `json:"status"`
	} `json:"vms"`
	Nodes []struct {
		Hostname string `json:"hostname"`
		Address  string `json:"address"`
		Stage    string `json:"stage"`
		Talos    string `json:"talos"`
	} `json:"nodes"`
	Clusters []struct {
		Name    string `json:"name"`
		Healthy bool   `json:"healthy"`
	} `json:"clusters"`
}

func (s *site) status() status {
	s.t.Helper()

	r := s.lab("status", "--json")
	require.Zero(s.t, r.code, r.all())

	var st status
	require.NoError(s.t, json.Unmarshal([]byte(r.stdout), &st), r.stdout)

	return st
}
