// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package controller

import (
	"fmt"

	"filippo.io/age"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/kube"
	"github.com/talos-proxmox/talos-proxmox/components/internal/stash"
	"github.com/talos-proxmox/talos-proxmox/internal/agekey"
)

// AgeKey decrypts what SOPS has encrypted in a repository.
type AgeKey struct{ Identity, Recipient pulumi.StringOutput }

// PersistAgeKey registers a key that is generated once and stays in the state for as long as it is
// registered, whatever becomes of the controller that uses it.
func PersistAgeKey(ctx *pulumi.Context, name string, opts ...pulumi.ResourceOption) (*AgeKey, error) {
	made, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, fmt.Errorf("generating an age key: %w", err)
	}
	stored, err := stash.Persist(ctx, name, pulumi.StringMap{
		"identity": pulumi.String(made.String()), "recipient": pulumi.String(made.Recipient().String()),
	}, opts...)
	if err != nil {
		return nil, err
	}

	return &AgeKey{Identity: stored.Value("identity"), Recipient: stored.Public("recipient")}, nil
}

// givenAgeKey returns the user's own key: an identity, or a file of `age-keygen` with its comments.
func givenAgeKey(given pulumi.StringInput) *AgeKey {
	part := func(of func(*age.X25519Identity) string) pulumi.StringOutput {
		return kube.Secret(given).ApplyT(func(text string) (string, error) {
			identity, err := agekey.Parse(text)
			if err != nil {
				return "", fmt.Errorf("sops.ageKey %w", err)
			}

			return of(identity), nil
		}).(pulumi.StringOutput)
	}
	recipient := part(func(i *age.X25519Identity) string { return i.Recipient().String() })

	return &AgeKey{
		Identity:  part(func(i *age.X25519Identity) string { return i.String() }),
		Recipient: pulumi.Unsecret(recipient).(pulumi.StringOutput),
	}
}
