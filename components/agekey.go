// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"fmt"

	"filippo.io/age"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/internal/agekey"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// AgeKey opens what SOPS has encrypted in a repository. It is generated once and kept in state for as
// long as it is registered, whatever becomes of the controller that uses it.
type AgeKey struct{ identity, recipient pulumi.StringOutput }

// NewAgeKey registers a key. Register it whether or not a [FluxBootstrap] uses it, so that turning
// GitOps off, or giving a key of one's own, does not lose the only key to a repository. flux is the name
// of the [FluxBootstrap] that kept the key in earlier versions.
func NewAgeKey(ctx *pulumi.Context, name, flux string, opts ...pulumi.ResourceOption) (*AgeKey, error) {
	kept := pulumi.CreateURN(pulumi.String(flux), pulumi.String(FluxBootstrapType), nil,
		pulumi.String(ctx.Project()), pulumi.String(ctx.Stack()))

	return generateAgeKey(ctx, name, append(opts, pulumi.Aliases([]pulumi.Alias{
		{Name: pulumi.String(flux + "-age"), ParentURN: kept},
	}))...)
}

func generateAgeKey(ctx *pulumi.Context, name string, opts ...pulumi.ResourceOption) (*AgeKey, error) {
	made, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, fmt.Errorf("generating an age key: %w", err)
	}
	stored, err := keep(ctx, name, pulumi.StringMap{
		"identity": pulumi.String(made.String()), "recipient": pulumi.String(made.Recipient().String()),
	}, opts...)
	if err != nil {
		return nil, err
	}

	return &AgeKey{identity: stored.value("identity"), recipient: shown(stored.value("recipient"))}, nil
}

// givenAgeKey is the user's own.
func givenAgeKey(given spec.Secret) (*AgeKey, error) {
	parsed, err := agekey.Parse(given.Reveal())
	if err != nil {
		return nil, fmt.Errorf("sops.ageKey %w", err)
	}

	return &AgeKey{
		identity:  secretString(pulumi.String(parsed.String())),
		recipient: pulumi.String(parsed.Recipient().String()).ToStringOutput(),
	}, nil
}
