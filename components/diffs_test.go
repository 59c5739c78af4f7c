// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// TestAnEditShowsOnceInADiff holds that a diff shows an edit where it is made: what follows from it are fingerprints.
func TestAnEditShowsOnceInADiff(t *testing.T) {
	t.Parallel()
	m, err := makeCluster(t, true, clusterConfig(3, 1))
	require.NoError(t, err)

	for _, name := range m.Names("pulumi:index:Stash") {
		follows := name == "test-ready" || strings.HasSuffix(name, "-edit")
		assert.Equal(t, follows, len(m.Register(name).GetHideDiffs()) > 0, name)
	}
	assert.Equal(t, []string{"machineConfiguration"}, m.Register("test-work-00").GetHideDiffs(), "the input says that it changes")
}

// TestWorkersCarryNoManifests counts where a day-0 manifest stands: with each control plane, never with a worker.
func TestWorkersCarryNoManifests(t *testing.T) {
	t.Parallel()
	cfg := clusterConfig(3, 2)
	const text = "a value of the manifest that stands nowhere else"
	cfg.Manifests.Inline = map[string]spec.Manifest{"note": {
		Inline: spec.Ptr(spec.Text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note, namespace: default}\ndata: {text: " + text + "}\n")),
	}}
	m, err := makeCluster(t, false, cfg)
	require.NoError(t, err)

	for _, name := range m.Names("") {
		count := 0
		for _, value := range m.Register(name).GetObject().GetFields() {
			count += strings.Count(value.String(), text)
		}
		want := 0
		if strings.HasPrefix(name, "test-ctrl-") && strings.HasSuffix(m.Register(name).GetType(), "ConfigurationApply") {
			want = 1
		}
		assert.Equal(t, want, count, name)
	}
}
