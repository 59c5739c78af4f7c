// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMakeDriftNamesWhatWasChanged changes on three nodes by hand what no provider looks at, and has
// `make drift` itself name exactly that, for a stack whose state is in a backend of its own.
func TestMakeDriftNamesWhatWasChanged(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.ownBackend()
	c := s.up("small", s.small())
	same := c.makeDrift()
	assert.Zero(t, same.code, same.all())
	assert.Equal(t, "cluster \"small\": all 3 nodes are as the stack has them\n", same.stdout)

	c.onNode("10.30.0.1", "label", "tier", "silver")
	c.onNode("10.30.0.2", "upgrade", "v1.12.5")
	s.returns("10.30.0.2", "v1.12.5")
	c.onNode("10.30.0.3", "upgrade", "v1.12.4", "siderolabs/qemu-guest-agent")
	s.returns("10.30.0.3", "v1.12.4")
	c.onNode("10.30.0.2", "remove-member", "cp-1")
	s.byHand(http.MethodPut, "/nodes/pve1/qemu/303/config", url.Values{"scsi9": {"local-lvm:3"}})

	drifted := c.makeDrift()
	assert.Equal(t, 2, drifted.code, "make's own code for a recipe that failed: %s", drifted.all())
	const (
		plain = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba" // without extensions
		agent = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515" // with the guest agent
	)
	lines := strings.Split(strings.TrimSpace(drifted.stdout), "\n")
	slices.Sort(lines)
	assert.Equal(t, []string{
		"cp-1 (10.30.0.1): configuration: machine.nodeLabels.tier was added: silver",
		"cp-2 (10.30.0.2): Talos is v1.12.5, the stack has v1.12.4",
		"cp-3 (10.30.0.3): the schematic is " + agent + ", the stack has " + plain,
		"cp-3: its VM 303 on host pve1 has the disk scsi9, which the stack does not have: take it out there (qm set 303 --delete scsi9, " +
			"which keeps its data as an unused disk), or write it under nodes.cp-3.disks and run `pulumi up --refresh`",
		"etcd: cp-1 (10.30.0.1) is no member",
	}, lines)
}

// ownBackend has everything from now on run as if somebody were logged in to a backend of their own.
func (s *site) ownBackend() {
	s.t.Helper()
	state := filepath.Join(s.t.TempDir(), "their-state")
	require.NoError(s.t, os.MkdirAll(state, 0o700))
	s.own = []string{"PULUMI_BACKEND_URL=file://" + state, "PULUMI_CONFIG_PASSPHRASE=theirs"}
}

// makeDrift runs the target on the stack.
func (r *running) makeDrift() result {
	r.t.Helper()

	return r.try("make", "--silent", "-C", r.root, "drift", "STACK="+r.stack, "ARGS=-C "+r.project)
}

// returns waits until a node runs a version of Talos and etcd has it back.
func (s *site) returns(address, version string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		st := s.status()
		healthy := len(st.Clusters) == 1 && st.Clusters[0].Healthy
		for _, n := range st.Nodes {
			if n.Address == address {
				return healthy && n.Stage == "running" && n.Talos == version
			}
		}

		return false
	}, 2*time.Minute, 200*time.Millisecond, "%s returns with %s", address, version)
}
