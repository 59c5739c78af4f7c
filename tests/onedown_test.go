// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// trio runs three control planes whose machines are edited, with the gate and without.
type trio struct{ *site }

func newTrio(t *testing.T) trio {
	t.Helper()

	c := describeTrio(t)
	r := c.up("guarded", 2048)
	require.Zero(t, r.code, r.all())

	return c
}

// describeTrio returns a stack that was never up.
func describeTrio(t *testing.T) trio {
	t.Helper()

	s := newSite(t)
	program := filepath.Join("tests", "testdata", "programs", "gate")
	s.copyProject(filepath.Join(s.root, program), s.build(program))
	s.create("trio")
	c := trio{s}
	c.set("talos", "v1.12.4")
	c.set("label", "before")

	return c
}

// up brings the machines to so much memory, in MiB.
func (c trio) up(mode string, memory int, args ...string) result {
	c.t.Helper()
	c.set("mode", mode)
	c.set("memory", fmt.Sprint(memory))

	return c.try(append([]string{"pulumi", "up", "--stack", "trio", "--yes", "--skip-preview", "--non-interactive"}, args...)...)
}

func (c trio) set(key, value string) {
	c.t.Helper()
	c.must("pulumi", "config", "set", key, value, "--stack", "trio")
}

// TestTheGateAndItsJudge edits every machine at once. With the gate the trace shows one control plane
// down at a time; with the gate taken out the same judge finds two down at once.
func TestTheGateAndItsJudge(t *testing.T) {
	t.Parallel()
	c := newTrio(t)

	started := time.Now()
	r := c.up("guarded", 3072)
	require.Zero(t, r.code, r.all())
	c.passesTheGate(started, 1)
	c.down(started, "10.31.0.1", "10.31.0.2", "10.31.0.3")

	// Machines, configurations and Talos in one edit, one step of the engine at a time.
	started = time.Now()
	c.set("talos", "v1.12.5")
	c.set("label", "after")
	r = c.up("guarded", 3584, "--parallel=1")
	require.Zero(t, r.code, r.all())
	c.passesTheGate(started, 1)
	c.inOrder(started, "talos.upgrade", "node/10.31.0.1", "node/10.31.0.2", "node/10.31.0.3")
	assert.Len(t, c.trace(started).of("pve.qmreboot"), 3)

	started = time.Now()
	r = c.up("open", 4096)
	require.Zero(t, r.code, r.all())
	assert.NotEmpty(t, c.trace(started).gateProblems(1), "without the gate two control planes are down at once")
}

// TestSilenceIsNotDeath edits every machine while no node answers. A cluster that was bootstrapped has
// something to lose, so none is rebooted; the next up does it when the nodes answer again.
func TestSilenceIsNotDeath(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	added := c.lab("fault", "add", "api-error", "api=talos")
	require.Zero(t, added.code, added.all())

	started := time.Now()
	r := c.up("hurried", 3072)
	assert.NotZero(t, r.code)
	assert.Contains(t, r.all(), `cluster "trio" was bootstrapped, and no control plane said within 10s that it serves etcd`)
	assert.Empty(t, c.trace(started).of("pve.qmreboot"), "nobody knows what is still up")

	cleared := c.lab("fault", "clear")
	require.Zero(t, cleared.code, cleared.all())
	r = c.up("guarded", 3072)
	require.Zero(t, r.code, r.all())
	c.passesTheGate(started, 1)
	assert.Len(t, c.trace(started).of("pve.qmreboot"), 3)
}

// TestMachinesOfNoClusterNeedNoTurn edits every machine of a cluster that was never bootstrapped, as after a
// first up with a wrong network: nobody answers, and nothing can be lost.
func TestMachinesOfNoClusterNeedNoTurn(t *testing.T) {
	heavy(t)
	t.Parallel()
	c := describeTrio(t)
	machines := []string{"--exclude=**talos:machine/configurationApply**", "--exclude-dependents"}
	r := c.up("guarded", 2048, machines...)
	require.Zero(t, r.code, r.all())
	added := c.lab("fault", "add", "api-error", "api=talos")
	require.Zero(t, added.code, added.all())

	started := time.Now()
	r = c.up("guarded", 3072, machines...)
	require.Zero(t, r.code, r.all())
	assert.Len(t, c.trace(started).of("pve.qmreboot"), 3)
}

// TestARebootDrains edits every machine while a disruption budget allows no eviction: nothing is rebooted over it.
// Without the budget the pods move before each machine goes down, and every node takes pods again.
func TestARebootDrains(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	shown := c.must("pulumi", "stack", "output", "kubeconfig", "--show-secrets", "--stack", "trio")
	require.NoError(t, os.WriteFile(kubeconfig, []byte(shown.stdout), 0o600))
	kubectl := func(args ...string) string {
		return c.must(append([]string{"kubectl", "--kubeconfig", kubeconfig}, args...)...).stdout
	}
	kubectl("create", "deployment", "web", "--image=example.com/web:1", "--replicas=3")
	kubectl("rollout", "status", "deployment/web", "--timeout=2m")
	kubectl("create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=3")

	started := time.Now()
	r := c.up("guarded", 3072)
	assert.NotZero(t, r.code)
	assert.Regexp(t, `draining node trio-\d: after 20s these pods are left: default/web-`, r.all())
	assert.Empty(t, c.trace(started).of("pve.qmreboot"))
	assert.NotContains(t, kubectl("get", "nodes"), "SchedulingDisabled", "what did not go down takes pods")

	kubectl("delete", "poddisruptionbudget", "web")
	before := kubectl("get", "pods", "-o", "name")
	r = c.up("guarded", 3072)
	require.Zero(t, r.code, r.all())
	c.passesTheGate(started, 1)
	assert.Len(t, c.trace(started).of("pve.qmreboot"), 3)
	for _, pod := range strings.Fields(before) {
		assert.NotContains(t, kubectl("get", "pods", "-o", "name"), pod, "it was evicted")
	}
	assert.NotContains(t, kubectl("get", "nodes"), "SchedulingDisabled")
}

// TestAHookBesideTheGateFails has somebody's own hook fail on one machine, before the gate and behind
// it. Nobody hangs, no second machine goes down beside it, and the next up does what is left.
func TestAHookBesideTheGateFails(t *testing.T) {
	heavy(t)
	t.Parallel()
	c := newTrio(t)

	started := time.Now()
	r := c.up("first", 3072)
	assert.NotZero(t, r.code)
	assert.Contains(t, r.all(), "somebody's own hook does not like it")
	c.passesTheGate(started, 1)
	c.untouched(started, "vm/311", "node/10.31.0.1")

	r = c.up("second", 4096)
	assert.NotZero(t, r.code)
	assert.Contains(t, r.all(), "somebody's own hook does not like it")
	c.passesTheGate(started, 1)
	c.untouched(started, "vm/311", "node/10.31.0.1")

	r = c.up("guarded", 4096)
	require.Zero(t, r.code, r.all())
	c.passesTheGate(started, 1)
	c.down(started, "10.31.0.1", "10.31.0.2", "10.31.0.3")
	c.must("pulumi", "preview", "--stack", "trio", "--expect-no-changes", "--non-interactive")
}

// TestAFailedEditClosesTheGate has the reboot of one machine fail in Proxmox VE. The others are left as
// they are and are told why, at once; the next up does what is left.
func TestAFailedEditClosesTheGate(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	added := c.lab("fault", "add", "task-error", "type=qmreboot", "count=1")
	require.Zero(t, added.code, added.all())

	started := time.Now()
	r := c.up("guarded", 3072)
	assert.NotZero(t, r.code)
	assert.Regexp(t, `node trio-\d \(10\.31\.0\.\d\) is left unchanged because node trio-\d \(10\.31\.0\.\d\) failed before`, r.all())
	assert.Less(t, time.Since(started), 3*time.Minute, "nobody waits for a turn that does not come")
	assert.Len(t, c.trace(started).of("pve.qmreboot"), 1, "nobody else is rebooted")

	r = c.up("guarded", 3072)
	require.Zero(t, r.code, r.all())
	c.passesTheGate(started, 1)
	assert.Len(t, c.trace(started).of("pve.qmreboot"), 4)
	c.must("pulumi", "preview", "--stack", "trio", "--expect-no-changes", "--non-interactive")
}
