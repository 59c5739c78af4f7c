// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/tests/makespan"
)

// TestFluxStartsWhileNodesJoin makes a cluster one of whose control planes hangs in its creation: the other nodes have
// their configuration, and Flux is installed, before that one is there. The gate opens when it is. With the next edit
// Flux waits for the gate.
func TestFluxStartsWhileNodesJoin(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	file := s.of([]string{"cp-1", "cp-2", "cp-3", "worker-4"}, withFlux...)
	s.create("small")
	hang := s.lab("fault", "add", "task-hang", "type=qmstart", "vm=302", "later=yes")
	require.Zero(t, hang.code, hang.all())

	var said lockedBuffer
	cmd := s.command("pulumi", "up", "--stack", "small", "--config-file", file, "--yes", "--skip-preview", "--non-interactive")
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Stdin = s.project, &said, &said, strings.NewReader("")
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	require.Eventually(t, func() bool {
		return len(ended) > 0 || strings.Contains(said.String(), "small-flux-kustomization created")
	},
		3*time.Minute, 200*time.Millisecond, "Flux does not wait for a node that hangs")
	before := said.String()
	for _, node := range []string{"cp-1", "cp-3", "worker-4"} {
		assert.Contains(t, before, "ConfigurationApply small-"+node+" created", "nor does another node")
	}
	assert.NotContains(t, before, "small-ready created")

	free := s.lab("fault", "clear")
	require.Zero(t, free.code, free.all())
	require.NoError(t, <-ended, said.String())
	up := &running{site: s, stack: "small", file: file}
	up.kubeconfig = up.output("kubeconfig")
	up.hasNodes("cp-1", "cp-2", "cp-3", "worker-4")
	up.isSettled()
	up.again() // the engine learns the order in which a cluster that lives is changed
	up.isSettled()
	assert.True(t, s.dependsOn("small", "Stash::small-gitops", "Stash::small-ready"), "Flux comes after the gate from now on")
	assert.True(t, s.dependsOn("small", "ConfigurationApply::small-cp-2", "ConfigurationApply::small-cp-1"),
		"control planes are configured one after the other from now on")
	up.destroy()
	assert.Empty(t, s.status().VMs)
}

// withFlux edits the small stack file: Flux follows a repository that anybody may read.
var withFlux = []string{
	"  talos-proxmox:nodes:\n", "  talos-proxmox:gitops: {provider: flux, method: chart, chart: {version: 2.18.2}, " +
		"git: {url: \"https://git.example.com/demo.git\"}}\n  talos-proxmox:nodes:\n",
}

// TestACreationTakesLittleMoreThanItMust works out, from the order in which the engine was told to make a cluster, how
// long that takes on real machines, against the longest chain of steps each of which needs the one before it.
func TestACreationTakesLittleMoreThanItMust(t *testing.T) {
	t.Parallel()
	const most = 1.10
	for _, nodes := range []int{6, 33} {
		t.Run(strconv.Itoa(nodes), func(t *testing.T) {
			if nodes > 6 {
				heavy(t)
			}
			t.Parallel()
			s := newSite(t)
			names := []string{"cp-1", "cp-2", "cp-3"}
			for i := 4; i <= nodes; i++ {
				names = append(names, "worker-"+strconv.Itoa(i+10)) // .10 is the cluster's own address
			}
			s.up("small", s.of(names, withFlux...))
			resources, err := makespan.ReadState(s.must("pulumi", "stack", "export", "--stack", "small").stdout)
			require.NoError(t, err)

			plan := makespan.Of(resources, "small", "cp-1", makespan.Lifelike())
			t.Log(plan)
			assert.LessOrEqual(t, plan.Ratio(), most)
		})
	}
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

// dependsOn reports whether the stack's state has a resource come after another, both named by the ends of their URNs.
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
		if strings.HasSuffix(r.URN, name) {
			return slices.ContainsFunc(r.Dependencies, func(urn string) bool { return strings.HasSuffix(urn, other) })
		}
	}

	return false
}
