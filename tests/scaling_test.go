// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// node is the line of the small stack file for a node, "cp-4" or "worker-6".
func nodeLine(name string) string {
	kind, number, _ := strings.Cut(name, "-")
	role := map[string]string{"cp": "controlplane", "worker": "worker"}[kind]

	return fmt.Sprintf("    %s: {role: %s, vmId: 30%s, networks: {lan: {address: 10.30.0.%s}}}\n", name, role, number, number)
}

// of returns the small stack file with exactly those nodes.
func (s *site) of(names []string, edits ...string) string {
	s.t.Helper()

	lines := ""
	for _, name := range names {
		lines += nodeLine(name)
	}

	return s.small(append([]string{nodeLine("cp-1"), "", nodeLine("cp-2"), "", nodeLine("cp-3"), lines}, edits...)...)
}

// TestControlPlanesComeAndGo takes a cluster from five control planes to three and to one, the first
// bootstrapped one among those that go, swaps one for another in one edit, and is refused two.
func TestControlPlanesComeAndGo(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	born := time.Now()
	c := s.up("small", s.of([]string{"cp-1", "cp-2", "cp-3", "cp-4", "cp-5", "worker-6"}))
	bootstraps := len(s.trace(born).of("talos.bootstrap"))
	assert.Equal(t, 1, bootstraps)

	c.scales([]string{"cp-3", "cp-4", "cp-5", "worker-6"}, "10.30.0.1", "10.30.0.2")
	c.scales([]string{"cp-4", "cp-5", "cp-7", "worker-6"}, "10.30.0.3")

	refused := s.try("pulumi", "up", "--stack", "small", "--config-file", s.of([]string{"cp-4", "cp-5", "worker-6"}),
		"--yes", "--skip-preview", "--non-interactive")
	assert.NotZero(t, refused.code)
	assert.Contains(t, refused.all(), "control planes")
	c.hasNodes("cp-4", "cp-5", "cp-7", "worker-6")

	c.scales([]string{"cp-7"}, "10.30.0.6", "10.30.0.4", "10.30.0.5")
	assert.Len(t, s.trace(born).of("talos.bootstrap"), bootstraps, "nothing is bootstrapped again")
	c.destroy()
	assert.Empty(t, s.status().VMs)
}

// scales edits the stack to those nodes, and asserts who left, in order, and that the rest was left alone
// but for what a plain edit of its configuration does.
func (r *running) scales(names []string, leave ...string) {
	r.t.Helper()

	started := time.Now()
	r.edit(r.of(names))
	r.hasNodes(names...)
	r.hasVMs(names...)
	seen := r.trace(started)
	assert.Empty(r.t, seen.gateProblems(1))
	var want []string
	for _, address := range leave {
		want = append(want, "node/"+address)
	}
	assert.Equal(r.t, want, seen.of("talos.reset").objects(), "who left, in order")
	for _, name := range names {
		_, number, _ := strings.Cut(name, "-")
		touched := seen.touched()
		assert.NotContains(r.t, touched["node/10.30.0."+number], "talos.reboot", name)
	}
	st := r.status()
	require.Len(r.t, st.Clusters, 1)
	assert.True(r.t, st.Clusters[0].Healthy)
	r.isSettled()
}

// TestARetiredNodeStaysOut starts the machine of a node that was retired by hand, before it is deleted:
// it has forgotten the cluster and waits for a configuration, and the next up deletes it.
func TestARetiredNodeStaysOut(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.up("small", s.of([]string{"cp-1", "cp-2", "cp-3"}))

	file := s.of([]string{"cp-1", "cp-3", "cp-4"})
	s.keepsItsMachine(302, file)
	s.power(302, "start", "running")
	require.Eventually(t, func() bool {
		for _, n := range s.status().Nodes {
			if n.Address == "10.30.0.2" {
				return n.Stage == "maintenance"
			}
		}

		return false
	}, time.Minute, 100*time.Millisecond, "it waits for a configuration")
	c.hasNodes("cp-1", "cp-3", "cp-4")

	s.protect(302, "0")
	c.edit(file)
	c.hasNodes("cp-1", "cp-3", "cp-4")
	c.hasVMs("cp-1", "cp-3", "cp-4")
}

// TestADeadNodeIsRemovedByForce cuts the power of a control plane for good. It is not removed as long as
// nobody says so, and then it is; started again from its old disk it is no member any more.
func TestADeadNodeIsRemovedByForce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.up("small", s.of([]string{"cp-1", "cp-2", "cp-3"}))
	s.power(301, "stop", "stopped")

	swapped := []string{"cp-2", "cp-3", "cp-4"}
	short := []string{"drainTimeout: 1m", "drainTimeout: 5s"}
	refused := s.try("pulumi", "up", "--stack", "small", "--config-file", s.of(swapped, short...),
		"--yes", "--skip-preview", "--non-interactive")
	assert.NotZero(t, refused.code)
	assert.Contains(t, refused.all(), "retiring node cp-1 (10.30.0.1): it does not answer")
	assert.Contains(t, refused.all(), "to remove it as it is, name it in lifecycle.force")

	forced := s.of(swapped, "drainTimeout: 1m", "drainTimeout: 5s\n    force: [cp-1]")
	s.keepsItsMachine(301, forced)
	s.power(301, "start", "running")
	require.Eventually(t, func() bool { return len(s.status().Nodes) == 4 }, time.Minute, 100*time.Millisecond, "it boots from its old disk")
	for _, members := range s.shape("small").Clusters {
		assert.NotContains(t, members, "cp-1", "etcd does not have it back")
	}
	s.protect(301, "0")
	c.edit(forced)
	c.hasNodes(swapped...)
	c.hasVMs(swapped...)
	c.isSettled()
}

// TestADeadWorkerIsRemovedByForce does the same with a worker.
func TestADeadWorkerIsRemovedByForce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	plane := "    cp-1: {role: controlplane, vmId: 301, networks: {lan: {address: 10.30.0.1}}}\n"
	c := s.up("small", s.small(alone(plane, plane+"    w-1: {role: worker, vmId: 401, networks: {lan: {address: 10.30.0.11}}}\n")...))
	c.hasNodes("cp-1", "w-1")
	s.power(401, "stop", "stopped")

	refused := s.try("pulumi", "up", "--stack", "small", "--config-file", s.small(alone("drainTimeout: 1m", "drainTimeout: 5s")...),
		"--yes", "--skip-preview", "--non-interactive")
	assert.NotZero(t, refused.code)
	assert.Contains(t, refused.all(), "retiring node w-1 (10.30.0.11): it does not answer")
	assert.Contains(t, refused.all(), "to remove it as it is, name it in lifecycle.force")
	s.must("kubectl", "--kubeconfig", c.kubeconfig, "get", "node", "w-1")

	c.edit(s.small(alone("drainTimeout: 1m", "drainTimeout: 5s\n    force: [w-1]")...))
	c.hasNodes("cp-1")
	c.hasVMs("cp-1")
	c.isSettled()
}

// keepsItsMachine runs an up that retires a node, and fails to delete its machine.
func (s *site) keepsItsMachine(id int, file string) {
	s.t.Helper()

	s.protect(id, "1")
	r := s.try("pulumi", "up", "--stack", "small", "--config-file", file, "--yes", "--skip-preview", "--non-interactive")
	require.NotZero(s.t, r.code, "a machine that is protected is not deleted")
	require.Contains(s.t, r.all(), "protection mode enabled")
}

// protect sets by hand whether Proxmox VE refuses to delete a VM.
func (s *site) protect(id int, on string) {
	s.t.Helper()
	s.byHand(http.MethodPut, fmt.Sprintf("/nodes/pve1/qemu/%d/config", id), url.Values{"protection": {on}})
}

// killedBefore runs an up and kills it when the site begins such an operation.
func (s *site) killedBefore(op, stack, file string) {
	s.t.Helper()

	r := s.lab("fault", "add", "kill", "op="+op)
	require.Zero(s.t, r.code, r.all())
	r = s.try("pulumi", "up", "--stack", stack, "--config-file", file, "--yes", "--skip-preview", "--non-interactive")
	require.Contains(s.t, r.stderr, "lab: the command is killed at "+op, r.all())
}
