// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os/exec"
	"strings"
	"sync"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// storeCredentials hands the kubeconfig and the talosconfig to the user's secrets manager, those of
// the two that have a name there.
func (c *TalosCluster) storeCredentials(ctx *pulumi.Context, name string) error {
	store := spec.Or(c.config.Output.Store, spec.CredentialStore{})
	if len(store.Command) == 0 {
		return nil
	}
	for _, credential := range []struct {
		what  string
		as    *string
		value pulumi.StringOutput
	}{
		{"kubeconfig", store.KubeconfigName, c.Kubeconfig}, {"talosconfig", store.TalosconfigName, c.Talosconfig},
	} {
		if credential.as == nil {
			continue
		}
		err := c.storeCredential(ctx, name, credential.what, commandFor(store.Command, *credential.as), credential.value)
		if err != nil {
			return err
		}
	}

	return nil
}

// commandFor is the command with the secret's name in its arguments.
func commandFor(command []string, name string) []string {
	full := []string{command[0]}
	for _, arg := range command[1:] {
		full = append(full, strings.ReplaceAll(arg, "{name}", name))
	}

	return full
}

// storeCredential registers what the store was given: a digest, never the secret itself. When that or
// the command changes, the command runs again, at up only; where it fails, it runs again next time.
func (c *TalosCluster) storeCredential(
	ctx *pulumi.Context, name, what string, command []string, value pulumi.StringOutput,
) error {
	var mu sync.Mutex
	secret := ""
	digest := pulumi.Unsecret(value.ApplyT(func(text string) string {
		mu.Lock()
		defer mu.Unlock()
		secret = text
		sum := sha256.Sum256([]byte(text))

		return hex.EncodeToString(sum[:])
	}))
	run, err := registerHook(ctx, TalosClusterType, name, "store/"+what, func(*pulumi.ResourceHookArgs) error {
		mu.Lock()
		defer mu.Unlock()
		//nolint:gosec // the user's own command
		cmd := exec.CommandContext(ctx.Context(), command[0], command[1:]...)
		cmd.Stdin = strings.NewReader(secret)
		// What the command prints may hold the secret: it is not repeated.
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("storing the %s of cluster %q: output.store.command %s: %w", what, name, command[0], err)
		}

		return nil
	})
	if err != nil {
		return err
	}
	_, err = pulumi.NewStash(ctx, name+"-"+what+"-stored", &pulumi.StashArgs{Input: pulumi.Map{
		"command": pulumi.ToStringArray(command), "digest": digest,
	}}, pulumi.Parent(c), pulumi.ResourceHooks(&pulumi.ResourceHookBinding{
		BeforeCreate: []*pulumi.ResourceHook{run}, BeforeUpdate: []*pulumi.ResourceHook{run},
	}))
	if err != nil {
		return fmt.Errorf("registering the stored %s of cluster %q: %w", what, name, err)
	}

	return nil
}
