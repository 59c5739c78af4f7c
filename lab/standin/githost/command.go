// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package githost

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/google/uuid"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

func runCreate(ctx context.Context, op *bridge.Op) (string, bridge.Tree, error) {
	out, err := run(ctx, op.In, op.In.Str("create"), nil)
	if err != nil {
		return "", nil, err
	}

	return uuid.NewString(), out, nil
}

// runUpdate runs the update command, else the one that creates.
func runUpdate(ctx context.Context, op *bridge.Op) (bridge.Tree, error) {
	script := op.In.Str("update")
	if script == "" {
		script = op.In.Str("create")
	}

	return run(ctx, op.In, script, op.State)
}

func runDelete(ctx context.Context, op *bridge.Op) error {
	_, err := run(ctx, op.State, op.State.Str("delete"), op.State)

	return err
}

// run runs a script of the resource with what its last run has printed.
func run(ctx context.Context, in bridge.Tree, script string, last bridge.Tree) (bridge.Tree, error) {
	if script == "" {
		return bridge.Tree{"stdout": "", "stderr": ""}, nil
	}
	interpreter := append(in.Strs("interpreter"), script)
	if len(interpreter) == 1 {
		interpreter = []string{"/bin/sh", "-c", script}
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, interpreter[0], interpreter[1:]...) // G204: what the program asks for
	cmd.Dir, cmd.Stdout, cmd.Stderr = in.Str("dir"), &stdout, &stderr
	cmd.Stdin = strings.NewReader(in.Str("stdin"))
	cmd.Env = os.Environ()
	for name := range in.Sub("environment") {
		cmd.Env = append(cmd.Env, name+"="+in.Sub("environment").Str(name))
	}
	if last != nil {
		cmd.Env = append(cmd.Env, "PULUMI_COMMAND_STDOUT="+last.Str("stdout"), "PULUMI_COMMAND_STDERR="+last.Str("stderr"))
	}
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w: running %q:\n%s", err, script, stderr.String()+stdout.String())
	}

	return bridge.Tree{
		"stdout": strings.TrimRight(stdout.String(), "\r\n"), "stderr": strings.TrimRight(stderr.String(), "\r\n"),
	}, nil
}
