// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/stack"
)

func TestFromEnvironment(t *testing.T) {
	t.Parallel()
	variables := map[string]string{
		"PULUMI_PROJECT": "mine", "PULUMI_STACK": "dev", "PULUMI_CONFIG": `{"mine:cluster": "{\"name\": \"blue\"}"}`,
		"PULUMI_CONFIG_SECRET_KEYS": `["mine:proxmox"]`,
	}
	s, err := stack.FromEnvironment(func(name string) string { return variables[name] }, "/project")
	require.NoError(t, err)
	assert.Equal(t, "mine", s.Project)
	assert.Equal(t, "dev", s.Stack)
	assert.Equal(t, map[string]string{"mine:cluster": `{"name": "blue"}`}, s.Values)
	assert.Equal(t, []string{"mine:proxmox"}, s.SecretKeys)

	variables["PULUMI_CONFIG"] = "{"
	_, err = stack.FromEnvironment(func(name string) string { return variables[name] }, "/project")
	assert.ErrorContains(t, err, "reading PULUMI_CONFIG: ")
}
