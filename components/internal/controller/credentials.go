// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package controller

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/internal/agekey"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Credentials hold secrets that other resources may produce; those that are nil are in the settings.
type Credentials struct {
	// Password or token that the repository is read with.
	Password pulumi.StringInput
	// PrivateKey is the SSH key that the repository is read with.
	PrivateKey pulumi.StringInput
	// RegistrationToken lets the deploy key be registered with the git host.
	RegistrationToken pulumi.StringInput
	// AgeKey decrypts the repository's secrets.
	AgeKey pulumi.StringInput
}

// placeholder takes the place of a secret that is not known yet while settings are checked.
const placeholder = "given-as-an-input"

// Fill returns the settings with placeholders where a credential is given as an input, so that rules which
// require one are met.
func (c Credentials) Fill(g spec.GitOps) spec.GitOps {
	if c.Password == nil || g.Git.Auth == nil {
		return g
	}
	auth := *g.Git.Auth
	auth.Password = spec.Ptr(spec.NewSecret(placeholder))
	g.Git.Auth = &auth

	return g
}

// privateKey returns the SSH key to use; nil when one is to be generated.
func (c Credentials) privateKey(auth spec.GitAuth) pulumi.StringInput {
	if c.PrivateKey != nil || auth.PrivateKey == nil {
		return c.PrivateKey
	}

	return pulumi.String(auth.PrivateKey.Reveal())
}

func (c Credentials) registrationToken(host spec.DeployKeyHost) pulumi.StringInput {
	if c.RegistrationToken != nil {
		return c.RegistrationToken
	}

	return pulumi.String(host.Token.Reveal())
}

// ageKey returns the key that decrypts secrets; one that is generated when none is given.
func (c Credentials) ageKey(ctx *pulumi.Context, name string, sops spec.SOPS, opts ...pulumi.ResourceOption) (*AgeKey, error) {
	switch {
	case sops.AgeKey != nil:
		if _, err := agekey.Parse(sops.AgeKey.Reveal()); err != nil {
			return nil, fmt.Errorf("sops.ageKey %w", err)
		}

		return givenAgeKey(pulumi.String(sops.AgeKey.Reveal())), nil
	case c.AgeKey != nil:
		return givenAgeKey(c.AgeKey), nil
	default:
		return PersistAgeKey(ctx, name, opts...)
	}
}
