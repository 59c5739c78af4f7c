// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// refuses asserts that an up of a stack file fails, and what it says.
func (r *running) refuses(file string, says ...string) {
	r.t.Helper()

	refused := r.try("pulumi", "up", "--stack", r.stack, "--config-file", file, "--yes", "--skip-preview", "--non-interactive")
	assert.NotZero(r.t, refused.code)
	for _, text := range says {
		assert.Contains(r.t, refused.all(), text)
	}
}

// TestWhatFollowsAnEditFollows edits a hostname, whose old Node goes; the VIP, which the kubeconfig follows; and removes a
// node whose VM is protected, which the plan refuses before the node is asked to leave.
func TestWhatFollowsAnEditFollows(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	nodes := []string{"cp-1", "worker-4"}
	c := s.up("small", s.of(nodes))
	worker := nodeLine("worker-4")

	renamed := []string{worker, strings.Replace(worker, "vmId:", "hostname: elsewhere, vmId:", 1)}
	c.edit(s.of(nodes, renamed...))
	c.hasNodes("cp-1", "elsewhere")

	moved := append([]string{"vip: 10.30.0.10", "vip: 10.30.0.20"}, renamed...)
	c.edit(s.of(nodes, moved...))
	c.kubeconfig = c.output("kubeconfig")
	text, err := os.ReadFile(c.kubeconfig)
	require.NoError(t, err)
	assert.Contains(t, string(text), "server: https://10.30.0.20:6443")
	c.hasNodes("cp-1", "elsewhere")
	c.isSettled()

	c.edit(s.of(nodes, append(moved, "hostname: elsewhere, vmId:", "hostname: elsewhere, protection: true, vmId:")...))
	started := time.Now()
	c.refuses(s.of([]string{"cp-1"}, moved[:2]...), "node worker-4: its VM is to be deleted, and is protected by nodes.worker-4.protection")
	assert.Empty(t, s.trace(started).of("talos.reset"))
	c.hasNodes("cp-1", "elsewhere")
}

// TestOneRunAtATimeInACluster has another run hold the cluster's Lease: no node is taken down beside it. When the other
// run is gone the next up does what is left.
func TestOneRunAtATimeInACluster(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.up("small", s.small(alone()...))
	lease := filepath.Join(t.TempDir(), "lease.yaml")
	held, free := context.WithCancel(t.Context())
	renew := func() {
		text := `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: talos-proxmox, namespace: kube-system}, spec: {
holderIdentity: "stack talos-proxmox/small on elsewhere, process 1 (other/abc)", leaseDurationSeconds: 20, renewTime: "` +
			time.Now().UTC().Format("2006-01-02T15:04:05.000000Z") + `"}}`
		_ = os.WriteFile(lease, []byte(text), 0o600)
		cmd := s.command("kubectl", "--kubeconfig", c.kubeconfig, "apply", "-f", lease)
		_ = exec.CommandContext(held, cmd.Path, cmd.Args[1:]...).Run() // the API server may be busy
	}
	renew()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for held.Err() == nil {
			renew()
		}
	}()

	started := time.Now()
	edited := s.small(alone("memory: 2048", "memory: 3072")...)
	c.refuses(edited, "another run is changing this cluster: stack talos-proxmox/small on elsewhere, process 1")
	assert.Empty(t, s.trace(started).of("pve.qmreboot", "node.down"))
	free()
	<-ended

	c.edit(edited)
	c.isSettled()
	none := s.try("kubectl", "--kubeconfig", c.kubeconfig, "-n", "kube-system", "get", "lease", "talos-proxmox")
	assert.Contains(t, none.all(), "NotFound", "it is given back")
}

// TestTwoRunsAtOnce breaks the backend's lock of a run that is taking nodes down, as a colleague does with `pulumi cancel`,
// and starts another one beside it: that one is refused, the first goes on, and never are two nodes down.
func TestTwoRunsAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.up("small", s.small())
	edited := s.small("memory: 2048", "memory: 3072")

	hang := s.lab("fault", "add", "task-hang", "type=qmreboot", "count=1") // else a slow second run comes too late
	require.Zero(t, hang.code, hang.all())
	started := time.Now()
	first := s.command("pulumi", "up", "--stack", "small", "--config-file", edited, "--yes", "--skip-preview", "--non-interactive")
	first.Dir = s.project
	var said bytes.Buffer
	first.Stdout, first.Stderr = &said, &said
	require.NoError(t, first.Start())
	require.Eventually(t, func() bool {
		return s.try("kubectl", "--kubeconfig", c.kubeconfig, "-n", "kube-system", "get", "lease", "talos-proxmox").code == 0
	}, 2*time.Minute, 300*time.Millisecond, "the first run is in the gate")
	s.must("pulumi", "cancel", "--stack", "small", "--yes")
	c.refuses(edited, "another run is changing this cluster: stack talos-proxmox/small on ")
	require.Zero(t, s.lab("fault", "clear").code)

	require.NoError(t, first.Wait(), said.String())
	assert.Empty(t, s.trace(started).gateProblems(1))
	assert.Len(t, s.trace(started).of("pve.qmreboot"), 3, "each node rebooted once")
	c.edit(edited)
	c.hasNodes("cp-1", "cp-2", "cp-3")
	c.isSettled()
}

// TestGitOpsSurvivesARefresh stops the cluster and refreshes: what is in Kubernetes stays in the state. A refresh of the
// VMs alone lets the next up start them, and nothing else is to be done.
func TestGitOpsSurvivesARefresh(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.up("small", s.small(alone("  talos-proxmox:nodes:",
		"  talos-proxmox:gitops: {provider: flux, chart: {version: 2.18.2}, git: {url: https://gitea.example.com/lab/x.git, path: clusters/small}}\n  talos-proxmox:nodes:")...))
	inKubernetes := func() int {
		return strings.Count(s.must("pulumi", "stack", "export", "--stack", "small").stdout, `"type": "kubernetes:`)
	}
	before := inKubernetes()
	require.NotZero(t, before)
	s.power(301, "stop", "stopped")

	s.try("pulumi", "refresh", "--stack", "small", "--config-file", c.file, "--yes", "--skip-preview", "--non-interactive")
	assert.Equal(t, before, inKubernetes(), "it is out of sight, not gone")
	s.must("pulumi", "refresh", "--target=**$proxmoxve:VM/**", "--stack", "small", "--config-file", c.file, "--yes", "--skip-preview", "--non-interactive")
	c.edit(c.file)
	assert.Equal(t, before, inKubernetes())
	c.isSettled()
}

// TestVMsMoveOneAtATime gives a cluster another host, on which half of its nodes are to be: their VMs move one after the
// other, while the others are well. A move that fails is made by the next up.
func TestVMsMoveOneAtATime(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	shared := []string{
		"https://pve1.example.com:8006", "https://alpha.example.com:8006", "      pve1: {datastore: local-lvm}", "      alpha: {datastore: local-lvm}",
		"      host: pve1\n", "      allowSharedHost: true\n", "  talos-proxmox:talos:", "  talos-proxmox:image: {datastore: nas, datastoreHost: alpha}\n  talos-proxmox:talos:",
	}
	nodes := []string{"cp-1", "cp-2", "cp-3", "worker-4"}
	c := s.up("small", s.of(nodes, shared...))
	wider := s.of(nodes, append([]string{
		"      pve1: {datastore: local-lvm}", "      pve1: {datastore: local-lvm}\n      charlie: {datastore: local-lvm}",
	}, shared...)...)
	on := func() map[string]string {
		hosts := map[string]string{}
		for _, vm := range s.status().VMs {
			hosts[vm.Name] = vm.Host
		}

		return hosts
	}
	assert.Equal(t, map[string]string{"cp-1": "alpha", "cp-2": "alpha", "cp-3": "alpha", "worker-4": "alpha"}, on())

	added := s.lab("fault", "add", "task-error", "type=qmigrate", "count=1")
	require.Zero(t, added.code, added.all())
	started := time.Now()
	c.refuses(wider, "failed before")
	c.edit(wider)
	assert.Equal(t, map[string]string{"cp-1": "alpha", "cp-2": "charlie", "cp-3": "alpha", "worker-4": "charlie"}, on())
	moves := s.trace(started).of("pve.qmigrate")
	require.Len(t, moves, 3)
	for i, move := range moves[1:] {
		assert.False(t, move.Start.Before(moves[i].End), "one after the other")
	}
	assert.Empty(t, s.trace(started).of("node.down"))
	c.isSettled()
}
