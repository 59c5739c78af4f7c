// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package agekey reads the age identity that opens the secrets of a repository.
package agekey

import (
	"errors"
	"strings"

	"filippo.io/age"
)

// Parse reads the one identity in a text: the line AGE-SECRET-KEY-1… alone, or the whole file that
// `age-keygen` writes, comments included. An error never holds the text.
func Parse(text string) (*age.X25519Identity, error) {
	var found *age.X25519Identity
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if found != nil {
			return nil, errors.New("holds several age identities: keep the one that secrets are encrypted for")
		}
		identity, err := age.ParseX25519Identity(line)
		if err != nil {
			return nil, errors.New("is not an age identity: give the line AGE-SECRET-KEY-1… that `age-keygen` prints")
		}
		found = identity
	}
	if found == nil {
		return nil, errors.New("holds no age identity: give the line AGE-SECRET-KEY-1… that `age-keygen` prints")
	}

	return found, nil
}
