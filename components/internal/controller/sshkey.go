// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package controller

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"golang.org/x/crypto/ssh"

	"github.com/talos-proxmox/talos-proxmox/components/internal/kube"
	"github.com/talos-proxmox/talos-proxmox/components/internal/stash"
)

// sshKey holds a key pair: the private half in OpenSSH's form, the public one as authorized_keys has it.
type sshKey struct{ private, public pulumi.StringOutput }

// deployKey returns the given key, else one that is generated once and kept in the state.
func deployKey(ctx *pulumi.Context, name string, given pulumi.StringInput, opts ...pulumi.ResourceOption) (sshKey, error) {
	if given != nil {
		private := kube.Secret(given)
		public := private.ApplyT(publicKeyOf)

		return sshKey{
			private: private, public: pulumi.Unsecret(public).(pulumi.StringOutput),
		}, nil
	}
	private, public, err := generateSSHKey()
	if err != nil {
		return sshKey{}, err
	}
	stored, err := stash.Persist(ctx, name, pulumi.StringMap{
		"private": pulumi.String(private), "public": pulumi.String(public),
	}, opts...)
	if err != nil {
		return sshKey{}, err
	}

	return sshKey{private: stored.Value("private"), public: stored.Public("public")}, nil
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

// publicKeyOf returns the public half of a private key; errors never show the key.
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
