// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"fmt"
	"os/exec"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/components/internal/stash"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// storedState is what the state remembers of a credential in the user's secrets manager: never the credential
// itself.
type storedState struct {
	Command []string `json:"command"`
	Digest  string   `json:"digest"`
}

// storeCredentials hands the kubeconfig and the talosconfig to the user's secrets manager, those of the two
// that have a name there.
func storeCredentials(b *Build, kubeconfig pulumi.StringOutput) error {
	store := spec.Or(b.Config.Output.Store, spec.CredentialStore{})
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
		//nolint:gosec // the user's own command
		cmd := exec.CommandContext(b.Ctx.Context(), command[0], command[1:]...)
		cmd.Stdin = strings.NewReader(text)
		// What the command prints may hold the secret: it is not repeated.
		if err := cmd.Run(); err != nil {
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
