// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Command record runs a session in a lab of its own and writes what a terminal shows of it: as an asciicast, which
// `asciinema play` shows, and as a picture that moves. Run it in the repository's root, after `make tools`:
//
//	go run ./tests/record docs/pictures/session
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// session returns what is typed. The program is the one that `make tools` built.
func session() []string {
	return []string{
		"tpx check dev",
		"pulumi up --stack dev --yes --skip-preview",
		"tpx access dev",
		"kubectl --kubeconfig kubeconfig get nodes",
		"sed -i s/v1.12.4/v1.12.5/ Pulumi.dev.yaml   # upgrade Talos",
		"pulumi up --stack dev --yes --skip-preview",
		"tpx status dev",
	}
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: record FILE, without its ending")
		os.Exit(1)
	}
	if err := record(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

// record runs the session and writes FILE.cast and FILE.svg.
func record(ctx context.Context, file string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "record-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := prepare(root, dir); err != nil {
		return err
	}
	lab := filepath.Join(root, "bin", "lab")
	in := func(command string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, lab, "exec", "--site", filepath.Join(dir, "site"), "--providers", "standin", "--", "sh",
			"-c", command+" 2>&1")
		cmd.Dir = filepath.Join(dir, "dev")

		return cmd
	}
	defer func() { _ = exec.CommandContext(ctx, lab, "stop", "--site", filepath.Join(dir, "site")).Run() }()
	if out, err := in("pulumi stack init dev").CombinedOutput(); err != nil {
		return fmt.Errorf("making the stack: %w: %s", err, out)
	}
	var t tape
	for _, command := range session() {
		t.typed(command)
		if err := t.run(in(command)); err != nil {
			return fmt.Errorf("%s: %w", command, err)
		}
	}
	if err := os.WriteFile(file+".cast", []byte(t.cast()), 0o644); err != nil {
		return err
	}

	return os.WriteFile(file+".svg", []byte(t.picture()), 0o644)
}

// prepare makes a project whose program is built already.
func prepare(root, dir string) error {
	project := filepath.Join(dir, "dev")
	if err := os.MkdirAll(project, 0o700); err != nil {
		return err
	}
	for _, name := range []string{"Pulumi.yaml", "Pulumi.dev.yaml"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(project, name), text, 0o600); err != nil {
			return err
		}
	}
	program := fmt.Sprintf("package main\n\nimport (\n\t\"os\"\n\t\"syscall\"\n)\n\n"+
		"func main() { panic(syscall.Exec(%q, os.Args, os.Environ())) }\n",
		filepath.Join(root, "bin", "program"))
	if err := os.WriteFile(filepath.Join(project, "main.go"), []byte(program), 0o600); err != nil {
		return err
	}

	return os.WriteFile(filepath.Join(project, "go.mod"), []byte("module launcher\n\ngo 1.26\n"), 0o600)
}

// line holds a line that the terminal shows, and when.
type line struct {
	at   time.Duration
	text string
}

// tape records what a terminal shows. Waits are cut short, so that the picture is over in a minute and nearly the same each time.
type tape struct {
	now   time.Duration
	lines []line
}

const (
	prompt = "$ "
	// typing is how long people look at a command before it runs, longest how long at most between two lines, shortest at least.
	typing, longest, shortest = 1200 * time.Millisecond, 500 * time.Millisecond, 60 * time.Millisecond
)

func (t *tape) typed(command string) {
	t.now += typing
	t.lines = append(t.lines, line{t.now, prompt + command})
	t.now += longest
}

// run runs a command and notes its lines.
func (t *tape) run(cmd *exec.Cmd) error {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	last := time.Now()
	scanner := bufio.NewScanner(out)
	for scanner.Scan() {
		now := time.Now()
		t.now += min(max(now.Sub(last), shortest), longest)
		last = now
		text := strings.TrimRight(strings.ReplaceAll(scanner.Text(), "\t", "    "), " ")
		if len([]rune(text)) > columns {
			text = string([]rune(text)[:columns-1]) + "…"
		}
		t.lines = append(t.lines, line{t.now, text})
	}

	return cmd.Wait()
}
