// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// TestCheckNamesTheLine has Talos find a mistake in a patch: it is told where the patch is written.
func TestCheckNamesTheLine(t *testing.T) {
	t.Parallel()
	s, err := load(t, onBase(t, "  talos-proxmox:talos:\n    patches:\n      all:\n        - inline: {machine: {network: {nameserver: [10.0.0.1]}}}\n"))
	require.NoError(t, err)
	err = s.Check(t.Context())
	var invalid *spec.InvalidError
	require.True(t, errors.As(err, &invalid), "%v", err)
	require.Len(t, invalid.Problems, 1)
	assert.Equal(t, "talos.patches.all[0].inline.machine.network.nameserver", invalid.Problems[0].Path)
	assert.Equal(t, 19, invalid.Problems[0].Line)
	assert.Contains(t, invalid.Problems[0].Message, "nameserver", "Talos's words")
}

func TestCheckOfShippedStacks(t *testing.T) {
	t.Parallel()
	for name, path := range shipped {
		s, err := load(t, read(t, path))
		require.NoError(t, err, name)
		assert.NoError(t, s.Check(t.Context()), name)
	}
}

func TestLocateLeavesOtherErrors(t *testing.T) {
	t.Parallel()
	s, err := load(t, read(t, "testdata/base.yaml"))
	require.NoError(t, err)
	other := errors.New("the network is down")
	assert.Equal(t, other, s.Locate(other))
	require.NoError(t, s.Locate(nil))
	assert.EqualError(t, s.Locate(&spec.InvalidError{Subject: "cluster base", Problems: []spec.Problem{
		{Path: "nodes.w-1.networks.lan.bridge", Message: "is not there"},
	}}), "cluster base: 1 problem\n  defaults.all.networks.lan.bridge (line 12): is not there")
}
