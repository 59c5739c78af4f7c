// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package controller

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/kube"
	"github.com/talos-proxmox/talos-proxmox/internal/agekey"
	"github.com/talos-proxmox/talos-proxmox/internal/gitops"
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

// placeholder stands in settings that are checked for a secret that is not known yet.
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

// secret holds a registered Secret and its data.
type secret struct {
	resource pulumi.Resource
	values   []pulumi.StringOutput
}

// registerSecret registers a secret and remembers its values.
func (b *builder) registerSecret(
	suffix string, o kube.Object, data map[string]pulumi.StringInput, before []pulumi.Resource,
) (secret, error) {
	made, err := kube.RegisterSecret(b.ctx, b.name+suffix, o, data, b.after(before...)...)
	if err != nil {
		return secret{}, err
	}
	s := secret{resource: made}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		s.values = append(s.values, data[key].ToStringOutput())
	}

	return s, nil
}

// gitSecret registers the secret that the controller reads the repository with, where it needs one, and
// returns the deploy key to allow, empty without an SSH key.
func (b *builder) gitSecret(before []pulumi.Resource) (secret, pulumi.StringOutput, error) {
	publicKey := pulumi.String("").ToStringOutput()
	wanted, needed := gitops.NewCredentials(b.clusterName, b.g)
	if !needed {
		return secret{}, publicKey, nil
	}
	data := map[string]pulumi.StringInput{}
	for field, value := range wanted.Data {
		data[field] = pulumi.String(value)
	}
	if _, used := data["password"]; used && b.credentials.Password != nil {
		data["password"] = b.credentials.Password
	}
	if wanted.PrivateKey != "" {
		key, err := deployKey(b.ctx, b.name+"-key", b.credentials.privateKey(*b.g.Git.Auth), b.into[0])
		if err != nil {
			return secret{}, publicKey, err
		}
		publicKey, data[wanted.PrivateKey] = key.public, key.private
		if wanted.PublicKey != "" {
			data[wanted.PublicKey] = key.public
		}
	}
	made, err := b.registerSecret("-git", kube.Object{
		Namespace: *b.g.Namespace, Name: wanted.Name, Labels: labels(wanted.Labels),
	}, data, before)

	return made, publicKey, err
}

// sopsSecret registers the key that decrypts the repository's secrets, where there is one, and returns what
// to encrypt them for.
func (b *builder) sopsSecret(before []pulumi.Resource) (secret, pulumi.StringOutput, error) {
	recipient := pulumi.String("").ToStringOutput()
	if b.g.SOPS == nil {
		return secret{}, recipient, nil
	}
	key, err := b.credentials.ageKey(b.ctx, b.name+"-age", *b.g.SOPS, b.into[0])
	if err != nil {
		return secret{}, recipient, err
	}

	// kustomize-controller takes keys whose names end in .agekey.
	made, err := b.registerSecret("-sops", kube.Object{Namespace: *b.g.Namespace, Name: *b.g.SOPS.SecretName},
		map[string]pulumi.StringInput{"identity.agekey": key.Identity}, before)

	return made, key.Recipient, err
}

// labels returns labels as Pulumi takes them.
func labels(given map[string]string) pulumi.StringMap {
	if len(given) == 0 {
		return nil
	}

	return pulumi.ToStringMap(given)
}
