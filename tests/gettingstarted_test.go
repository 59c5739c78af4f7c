// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// commandsOf returns the commands that a page gives under its headings, those in fenced blocks of sh.
func commandsOf(t *testing.T, page string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", page))
	require.NoError(t, err)
	commands := map[string]string{}
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		heading, body, _ := strings.Cut(section, "\n")
		for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(body, -1) {
			commands[heading] += block[1]
		}
	}

	return commands
}

// TestGettingStarted runs the commands of docs/getting-started.md from the stack file on, as they stand there, as
// somebody with a backend and a passphrase of their own. The lab plays the host, which runs Proxmox VE 8.
func TestGettingStarted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.ownBackend()
	home := t.TempDir()
	require.NoError(t, os.Symlink(s.build("cmd/tpx"), filepath.Join(home, "tpx")))
	s.own = append(s.own, "KUBECONFIG="+filepath.Join(home, "kube"), "TALOSCONFIG="+filepath.Join(home, "talos"))
	s.must("pulumi", "stack", "init", "home")

	commands := commandsOf(t, "getting-started.md")
	run := func(heading string) result {
		script := strings.NewReplacer(
			"--proxmox-version 9", "--proxmox-version 8",
			"export PROXMOX_VE_API_TOKEN=", "# ", // the lab has one
			`"$(ssh-keyscan -t ed25519 github.com 2>/dev/null)"`, `"github.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"`,
			"pulumi up", "pulumi up --yes --skip-preview",
		).Replace(commands[heading])
		require.NotEmpty(t, script, heading)
		r := s.try("bash", "-euo", "pipefail", "-c", "PATH="+home+":$PATH\n"+script)
		require.Zero(t, r.code, "%s\n%s", script, r.all())

		return r
	}

	assert.Contains(t, run("5. The stack file").stdout, "Pulumi.home.yaml is written. Next:")
	looked := run("6. Look before you leap")
	assert.NotContains(t, looked.stdout, "problem (", looked.stdout)
	up := run("7. Up")
	assert.Regexp(t, `(?m)^cp-3 +Ready +control-plane`, up.stdout)
	git := run("8. Git")
	assert.Regexp(t, `(?m)^gitrepository.source.toolkit.fluxcd.io/flux-system `, git.stdout)
	assert.Contains(t, git.stdout, "ssh-ed25519 ")
	s.must("pulumi", "destroy", "--stack", "home", "--yes", "--skip-preview")
	assert.Empty(t, s.status().VMs)
}
