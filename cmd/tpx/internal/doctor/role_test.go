// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package doctor_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/doctor"
	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/pulumi"
	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/stackfile"
)

// TestTheDocumentedRoleCoversTheShippedStacks reads the commands that people copy, and what each stack needs
// for what it says.
func TestTheDocumentedRoleCoversTheShippedStacks(t *testing.T) {
	t.Parallel()
	project, err := pulumi.FindProject(".")
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(project.Dir, "docs", "proxmox.md"))
	require.NoError(t, err)
	roles := map[string]string{}
	for _, m := range regexp.MustCompile(`(?s)# Proxmox VE (\d)\npveum role add Talos -privs "([^"]*)"`).FindAllStringSubmatch(string(page), -1) {
		roles[m[1]] = m[2]
	}
	require.Len(t, roles, 2)

	stacks := map[string]string{"dev": "", "prod": ""}
	for _, name := range []string{"homelab", "cilium-argocd"} {
		stacks[name] = filepath.Join(project.Dir, "examples", name, "Pulumi."+name+".yaml")
	}
	for name, file := range stacks {
		s, _, err := stackfile.Load(t.Context(), project, pulumi.CLI{Stack: name, ConfigFile: file})
		require.NoError(t, err, name)
		for release, version := range map[string]int{"8": 8, "9": 9} {
			have := strings.Fields(strings.ReplaceAll(roles[release], "\\", ""))
			for _, p := range doctor.NeededPrivileges(s.Config, version) {
				if !strings.HasPrefix(p.Name, "Mapping.") { // for GPUs alone; the page lists them apart
					assert.Contains(t, have, p.Name, "stack %s on Proxmox VE %s: %s", name, release, p.For)
				}
			}
		}
	}
}
