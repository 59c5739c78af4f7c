// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
)

// flagChoices are flags with a few values, of which the programs take no other.
var flagChoices = map[string][]string{
	"tls-min-version": {"VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"}, "auto-compaction-mode": {"periodic", "revision"},
	"audit-log-format": {"legacy", "json"}, "audit-log-mode": {"batch", "blocking", "blocking-strict"}, "logging-format": {"text", "json"},
	"audit-webhook-mode": {"batch", "blocking", "blocking-strict"}, "cloud-provider": {"external"},
	"log-level": {"debug", "info", "warn", "error", "panic", "fatal"},
}

// flagBounds are flags with numbers, and the least and the most that the programs take.
var flagBounds = map[string][2]float64{
	"max-requests-inflight": {0, 1 << 30}, "max-mutating-requests-inflight": {0, 1 << 30}, "goaway-chance": {0, 0.02},
	"max-pods": {1, 1 << 30}, "v": {0, 100}, "snapshot-count": {1, 1 << 40}, "max-request-bytes": {1, 1 << 31}, "max-txn-ops": {1, 1 << 31},
	"audit-log-maxage": {0, 1 << 30}, "audit-log-maxbackup": {0, 1 << 30}, "audit-log-maxsize": {0, 1 << 30},
}

// flagChoice returns what is wrong with the value of a flag that takes a few values, or a number between bounds; "" when nothing is.
func flagChoice(flag, value string) string {
	if choices, has := flagChoices[flag]; has && !slices.Contains(choices, value) {
		return scope.NotOneOf(value, choices)
	}
	if bounds, has := flagBounds[flag]; has {
		number, err := strconv.ParseFloat(value, 64)
		switch {
		case err != nil:
			return fmt.Sprintf("is %q, and the flag takes a number", value)
		case number < bounds[0] || number > bounds[1]:
			return fmt.Sprintf("is %s, with which the program does not start: write a number from %g to %g", value, bounds[0], bounds[1])
		}
	}
	if flag == "tls-cipher-suites" {
		return unknownCipher(value)
	}

	return flagForm(flag, value)
}

// unknownCipher returns what is wrong with a list of cipher suites; "" when nothing is.
func unknownCipher(list string) string {
	var known []string
	for _, suite := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		known = append(known, suite.Name, strings.TrimSuffix(suite.Name, "_SHA256")) // Kubernetes has the earlier name of some too
	}
	for _, name := range strings.Split(list, ",") {
		if !slices.Contains(known, strings.TrimSpace(name)) {
			return scope.NotOneOf(strings.TrimSpace(name), known)
		}
	}

	return ""
}
