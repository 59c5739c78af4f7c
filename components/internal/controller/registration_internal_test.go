// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package controller

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAMissingToolIsToldWithItsRemedy(t *testing.T) {
	t.Parallel()
	require.NoError(t, findTool(func(string) (string, error) { return "/usr/bin/tpx", nil }))
	require.EqualError(t, findTool(func(string) (string, error) { return "", exec.ErrNotFound }),
		"gitops.git.auth.register: tpx registers keys at Gitea and Forgejo, and is not on PATH: "+
			"go install github.com/talos-proxmox/talos-proxmox/cmd/tpx@latest")
}
