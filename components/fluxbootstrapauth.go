// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"golang.org/x/crypto/ssh"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// sopsSecret registers the key that decrypts the repository's secrets; nil when there is none.
func (b *fluxBuilder) sopsSecret(f *FluxBootstrap, kept *AgeKey, before []pulumi.Resource) (pulumi.Resource, error) {
	f.AgeRecipient = pulumi.String("").ToStringOutput()
	if b.g.SOPS == nil {
		return nil, nil //nolint:nilnil // no secret, no error
	}
	key, err := kept, error(nil)
	switch {
	case b.g.SOPS.AgeKey != nil:
		key, err = givenAgeKey(*b.g.SOPS.AgeKey)
	case key == nil:
		key, err = generateAgeKey(b.ctx, b.name+"-age", b.into[0])
	}
	if err != nil {
		return nil, err
	}
	f.AgeRecipient = key.recipient

	// kustomize-controller takes keys whose names end in .agekey.
	return registerSecret(b.ctx, b.name+"-sops", object{namespace: *b.g.Namespace, name: *b.g.SOPS.SecretName},
		map[string]pulumi.StringInput{"identity.agekey": key.identity}, b.after(before...)...)
}

func revealed(s *spec.Secret) string {
	if s == nil {
		return ""
	}

	return s.Reveal()
}

// sshKey is a key pair: the private half in OpenSSH's form, the public one as authorized_keys has it.
type sshKey struct{ private, public pulumi.StringOutput }

// deployKey is the given key, else one that is generated once and kept in state.
func deployKey(
	ctx *pulumi.Context, name string, given *spec.Secret, opts ...pulumi.ResourceOption,
) (sshKey, error) {
	if given != nil {
		public, err := publicKeyOf(given.Reveal())
		if err != nil {
			return sshKey{}, err
		}

		return sshKey{
			private: secretString(pulumi.String(given.Reveal())), public: pulumi.String(public).ToStringOutput(),
		}, nil
	}
	private, public, err := generateSSHKey()
	if err != nil {
		return sshKey{}, err
	}
	stored, err := keep(ctx, name, pulumi.StringMap{
		"private": pulumi.String(private), "public": pulumi.String(public),
	}, opts...)
	if err != nil {
		return sshKey{}, err
	}

	return sshKey{private: stored.value("private"), public: shown(stored.value("public"))}, nil
}

// shown is a value that was kept with secrets and is none.
func shown(text pulumi.StringOutput) pulumi.StringOutput {
	return pulumi.Unsecret(text).(pulumi.StringOutput) //nolint:forcetypeassert // Unsecret keeps the type
}

// keyComment is the comment in a generated key.
const keyComment = "talos-proxmox"

func generateSSHKey() (private, public string, err error) {
	publicKey, privateKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", "", fmt.Errorf("generating a deploy key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(privateKey, keyComment)
	if err != nil {
		return "", "", fmt.Errorf("writing a deploy key: %w", err)
	}
	sshPublic, err := ssh.NewPublicKey(publicKey)
	if err != nil {
		return "", "", fmt.Errorf("writing a deploy key: %w", err)
	}

	return string(pem.EncodeToMemory(block)), authorizedKey(sshPublic), nil
}

// publicKeyOf is the public half of a private key; errors never show the key.
func publicKeyOf(private string) (string, error) {
	signer, err := ssh.ParsePrivateKey([]byte(private))
	if err != nil {
		return "", errors.New("git.auth.privateKey: is no private key in OpenSSH's form without a passphrase")
	}

	return authorizedKey(signer.PublicKey()), nil
}

func authorizedKey(key ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) + " " + keyComment
}
