// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package scope

import (
	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/credential"
)

// Wrong reports whether something is wrong already at one of the paths, below or around it: what relates such a setting to
// others would only follow from that.
func (s *Scope) Wrong(paths ...string) bool {
	for _, path := range paths {
		if s.List.Has(path) {
			return true
		}
	}

	return false
}

// Twice records entries of a list that stand there before.
func (s *Scope) Twice(path string, texts []string) {
	seen := map[string]int{}
	for i, text := range texts {
		if s.Wrong(check.Index(path, i)) {
			continue
		}
		if first, twice := seen[text]; twice {
			s.Addf(check.Index(path, i), "%q is listed twice, first as number %d of the list: remove it", text, first+1)

			continue
		}
		seen[text] = i
	}
}

// Together records the one of username and password that is missing.
func (s *Scope) Together(path string, username, password bool) {
	switch {
	case username && !password:
		s.Addf(path+".password", "is required beside username: add it as a secret, or remove the username")
	case password && !username:
		s.Addf(path+".username", "is required beside password: add it, or remove the password")
	}
}

// ReadFile reads a file of the project for a setting, and records that it cannot be read. It reports whether there is a text.
func (s *Scope) ReadFile(path, name string) (string, bool) {
	if s.Files == nil {
		return "", false
	}
	text, err := s.Files(name)
	if err != nil {
		s.Addf(path, "%q cannot be read: %s", name, err)

		return "", false
	}

	return string(text), true
}

// PlainFile reads a file of the project in which no credential may stand in plain text, and reports whether there is a text.
func (s *Scope) PlainFile(path, name, instead string) (string, bool) {
	text, ok := s.ReadFile(path, name)
	if !ok {
		return "", false
	}
	if what, line := credential.InText(text); what != "" {
		s.Addf(path, "%s, line %d, holds %s in plain text: %s", name, line, what, instead)

		return "", false
	}

	return text, true
}
