// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stackfile

import (
	"crypto/ed25519"
	"encoding/pem"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/ssh"
)

// Closed takes the place of an encrypted value whose form no rule checks.
const Closed = "closed"

// standInToken has the form of a token of Proxmox VE.
const standInToken = "stand@in!closed=00000000-0000-0000-0000-000000000000"

// StandIn returns something in the form that the rules ask for at the path of a closed value.
func StandIn(path, _ string) string {
	made, err := standIn(path)
	if err != nil {
		return Closed
	}

	return made
}

func standIn(path string) (string, error) {
	switch {
	case path == "proxmox.apiToken":
		return standInToken, nil
	case strings.HasSuffix(path, ".privateKey"):
		return standInSSHKey()
	case strings.HasSuffix(path, ".ageKey"):
		made, err := age.GenerateX25519Identity()
		if err != nil {
			return "", err
		}

		return made.String(), nil
	case path == "cluster.secretsBundle":
		return standInBundle()
	default:
		return Closed, nil
	}
}

func standInSSHKey() (string, error) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return "", err
	}
	block, err := ssh.MarshalPrivateKey(key, Closed)
	if err != nil {
		return "", err
	}

	return string(pem.EncodeToMemory(block)), nil
}

func standInBundle() (string, error) {
	bundle, err := secrets.NewBundle(secrets.NewFixedClock(time.Now()), nil)
	if err != nil {
		return "", err
	}
	text, err := yaml.Marshal(bundle)

	return string(text), err
}
