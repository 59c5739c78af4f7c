// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFluxStartsWhileNodesJoin makes a cluster one of whose control planes hangs in its creation: the other nodes have
// their configuration, and Flux is installed, before that one is there. The gate opens when it is. With the next edit
// Flux waits for the gate.
func TestFluxStartsWhileNodesJoin(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	file := s.of([]string{"cp-1", "cp-2", "cp-3", "worker-4"}, "  talos-proxmox:nodes:\n",
		"  talos-proxmox:gitops: {provider: flux, method: chart, git: {url: \"https://git.example.com/demo.git\"}}\n  talos-proxmox:nodes:\n")
	s.create("small")
	hang := s.lab("fault", "add", "task-hang", "type=qmstart", "vm=302", "later=yes")
	require.Zero(t, hang.code, hang.all())

	var said lockedBuffer
	cmd := s.command("pulumi", "up", "--stack", "small", "--config-file", file, "--yes", "--skip-preview", "--non-interactive")
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Stdin = s.project, &said, &said, strings.NewReader("")
	require.NoError(t, cmd.Start())
	assert.Eventually(t, func() bool { return strings.Contains(said.String(), "small-flux-kustomization created") },
		3*time.Minute, 200*time.Millisecond, "Flux does not wait for a node that hangs")
	before := said.String()
	for _, node := range []string{"cp-1", "cp-3", "worker-4"} {
		assert.Contains(t, before, "ConfigurationApply small-"+node+" created", "nor does another node")
	}
	assert.NotContains(t, before, "small-ready created")

	free := s.lab("fault", "clear")
	require.Zero(t, free.code, free.all())
	require.NoError(t, cmd.Wait(), said.String())
	up := &running{site: s, stack: "small", file: file}
	up.kubeconfig = up.output("kubeconfig")
	up.hasNodes("cp-1", "cp-2", "cp-3", "worker-4")
	up.isSettled()
	up.again() // the engine learns the order in which a cluster that lives is changed
	up.isSettled()
	assert.True(t, s.dependsOn("small", "small-gitops", "small-ready"), "Flux comes after the gate from now on")
	assert.True(t, s.dependsOn("small", "small-cp-2", "small-cp-1"), "control planes are configured one after the other from now on")
	up.destroy()
	assert.Empty(t, s.status().VMs)
}

// lockedBuffer collects what a command says while it is read.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.text.String()
}

// dependsOn reports whether the stack's state has a resource come after another.
func (s *site) dependsOn(stack, name, other string) bool {
	s.t.Helper()

	var state struct {
		Deployment struct {
			Resources []struct {
				URN          string   `json:"urn"`
				Dependencies []string `json:"dependencies"`
			} `json:"resources"`
		} `json:"deployment"`
	}
	require.NoError(s.t, json.Unmarshal([]byte(s.must("pulumi", "stack", "export", "--stack", stack).stdout), &state))
	for _, r := range state.Deployment.Resources {
		if strings.HasSuffix(r.URN, "::"+name) {
			return slices.ContainsFunc(r.Dependencies, func(urn string) bool { return strings.HasSuffix(urn, "::"+other) })
		}
	}

	return false
}
