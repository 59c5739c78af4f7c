// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/components/internal/stash"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// storedState holds what the state remembers of a credential in the user's secrets manager: never the credential
// itself.
type storedState struct {
	Command []string `json:"command"`
	Digest  string   `json:"digest"`
}

// storeCredentials hands the kubeconfig and the talosconfig to the user's secrets manager, those of the two
// that have a name there.
func storeCredentials(b *Build, kubeconfig pulumi.StringOutput) error {
	store := spec.Value(b.Config.Output.Store)
	if len(store.Command) == 0 {
		return nil
	}
	for _, credential := range []struct {
		what  string
		name  *string
		value pulumi.StringOutput
	}{
		{"kubeconfig", store.KubeconfigName, kubeconfig}, {"talosconfig", store.TalosconfigName, b.Secrets.Talosconfig},
	} {
		if credential.name == nil {
			continue
		}
		err := storeCredential(b, credential.what, commandFor(store.Command, *credential.name), credential.value)
		if err != nil {
			return err
		}
	}

	return nil
}

// commandFor returns the command with the secret's name in its arguments.
func commandFor(command []string, name string) []string {
	full := []string{command[0]}
	for _, arg := range command[1:] {
		full = append(full, strings.ReplaceAll(arg, "{name}", name))
	}

	return full
}

// storeCredential registers what the store was given. When that or the command changes, the command runs
// again, at up only; where it fails, it runs again next time.
func storeCredential(b *Build, what string, command []string, value pulumi.StringOutput) error {
	secret := hook.FutureOf("the "+what+" of cluster "+b.Name, value)
	run := func(hook.Step) error {
		text, err := secret.Get(b.Ctx.Context())
		if err != nil {
			return err
		}
		if err := runStore(b.Ctx.Context(), command, text); err != nil {
			return fmt.Errorf("storing the %s of cluster %q: output.store.command %s: %w", what, b.Name, command[0], err)
		}

		return nil
	}
	_, err := stash.RememberInputs(b.Ctx, b.Name+"-"+what+"-stored", pulumi.Map{
		"command": pulumi.ToStringArray(command), "digest": fingerprintOf(value),
	}, stash.On[storedState]{
		Create: func(step hook.Step, _ storedState) error { return run(step) },
		Update: func(step hook.Step, _, _ storedState) error { return run(step) },
	}, pulumi.Parent(b.Parent))

	return err
}

// storeTimeout bounds the user's command: one that waits for somebody to log in would hold the run for ever.
const storeTimeout = 5 * time.Minute

// runStore runs the user's command with a secret on its standard input. It gets the environment without Pulumi's
// own variables, among which are all settings of the stack in clear. The error has the end of what it said.
func runStore(ctx context.Context, command []string, secret string) error {
	working, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	var said bytes.Buffer
	cmd := exec.CommandContext(working, command[0], command[1:]...)
	cmd.Stdin, cmd.Stderr = strings.NewReader(secret), &said
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "PULUMI_") || strings.HasPrefix(v, "PROXMOX_VE_") || strings.HasPrefix(v, "TALOS_PROXMOX_GIT_")
	})
	cmd.WaitDelay = time.Second // for what it has started itself and left with its output
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case working.Err() != nil && ctx.Err() == nil:
		return fmt.Errorf("it did not end within %s", storeTimeout)
	case said.Len() == 0:
		return err
	default:
		return fmt.Errorf("%w: %s", err, withoutSecret(said.String(), secret))
	}
}

// withoutSecret returns the end of what a command said, without any line of the secret.
func withoutSecret(text, secret string) string {
	for line := range strings.Lines(secret) {
		if line = strings.TrimSpace(line); len(line) > 3 {
			text = strings.ReplaceAll(text, line, "[secret]")
			for word := range strings.FieldsSeq(line) {
				if len(word) > 15 { // a key or a certificate, in other lines than here
					text = strings.ReplaceAll(text, word, "[secret]")
				}
			}
		}
	}
	const limit = 400
	if len(text) > limit {
		text = "…" + text[len(text)-limit:]
	}

	return strings.TrimSpace(text)
}
