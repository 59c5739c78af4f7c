// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package keys_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheSameStackLeadsToTheSame repeats a run: what a resource depends on must not follow from which goroutine
// was faster.
func TestTheSameStackLeadsToTheSame(t *testing.T) {
	t.Parallel()
	r := newRunner(t)
	for name, given := range map[string]string{
		"one node": "{}",
		"a worker": workerGiven,
		"Flux":     `gitops: {provider: flux, chart: {version: 2.16.0}, git: {url: "https://git.example.com/one.git"}}`,
		"Argo CD":  `gitops: {provider: argocd, chart: {version: 9.0.0}, git: {url: "https://git.example.com/one.git"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := overlay(t, overlay(t, nil, parse(t, smallest)), parse(t, given))
			first := r.outcome(t, s)
			require.NoError(t, first.err)
			for range 30 {
				require.Empty(t, difference(first, r.outcome(t, s)))
			}
		})
	}
}
