// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package controlplane

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"slices"
)

// missing reports whether the certificate lacks an address by which somebody may come. The name of a
// node that joined later is no reason to start the API server again.
func (k *Runner) missing(names []string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()

	return slices.ContainsFunc(names, func(name string) bool {
		_, err := netip.ParseAddr(name)

		return err == nil && !slices.Contains(k.config.CertSANs, name)
	})
}

// allSANs adds to the names that the certificate has had: one whose node is away stays, so that a
// node that reboots changes nothing.
func (k *Runner) allSANs(names []string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()

	for _, name := range names {
		if !slices.Contains(k.sans, name) {
			k.sans = append(k.sans, name)
		}
	}
	slices.Sort(k.sans)

	return slices.Clone(k.sans)
}

func configDigest(c Config) string {
	c.Restore, c.Trace, c.CertSANs = nil, nil, nil
	content, err := json.Marshal(c)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(content)

	return hex.EncodeToString(sum[:])
}

// ConfigDigestOf returns a digest of any value that JSON can hold.
func ConfigDigestOf(v any) string {
	content, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(content)

	return hex.EncodeToString(sum[:])
}
