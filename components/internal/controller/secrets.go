// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package controller

import (
	"maps"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/kube"
	"github.com/talos-proxmox/talos-proxmox/internal/gitops"
)

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
