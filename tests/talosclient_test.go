// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// talosConfigEnv makes this test binary, run inside the lab, ask the cluster of that talosconfig.
const talosConfigEnv = "TESTS_TALOSCONFIG"

// talosAnswers runs [TestTalosClientInLab] inside the lab, where the nodes can be reached.
func (r *running) talosAnswers() {
	r.t.Helper()

	self, err := os.Executable()
	require.NoError(r.t, err)
	out := r.must("env", talosConfigEnv+"="+r.talosconfig, self, "-test.run=^TestTalosClientInLab$", "-test.v")
	assert.Contains(r.t, out.all(), "--- PASS: TestTalosClientInLab")
}

// TestTalosClientInLab asks every node for its version and services, and etcd for its members. It
// needs the lab's proxy, so [running.talosAnswers] runs it in a process of its own.
func TestTalosClientInLab(t *testing.T) {
	path := os.Getenv(talosConfigEnv)
	if path == "" {
		t.Skip("runs inside the lab only: the other engine tests start it there")
	}

	cfg, err := config.Open(path)
	require.NoError(t, err)
	current := cfg.Contexts[cfg.Context]
	require.NotEmpty(t, current.Endpoints)

	// One endpoint: through a proxy gRPC checks the certificate of several against all their names in one.
	c, err := client.New(t.Context(), client.WithConfig(cfg), client.WithEndpoints(current.Endpoints[0]))
	require.NoError(t, err)
	defer func() { assert.NoError(t, c.Close()) }()

	//nolint:staticcheck // what talosctl does
	ctx := client.WithNodes(t.Context(), current.Nodes...)
	version, err := c.Version(ctx)
	require.NoError(t, err)
	assert.Len(t, version.GetMessages(), len(current.Nodes))

	services, err := c.ServiceList(ctx)
	require.NoError(t, err)
	running := 0
	for _, m := range services.GetMessages() {
		for _, s := range m.GetServices() {
			if s.GetId() == "kubelet" && s.GetState() == "Running" {
				running++
			}
		}
	}
	assert.Equal(t, len(current.Nodes), running, "a kubelet runs on each node")

	members, err := c.EtcdMemberList(client.WithNode(t.Context(), current.Endpoints[0]), &machine.EtcdMemberListRequest{})
	require.NoError(t, err)
	require.Len(t, members.GetMessages(), 1)
	assert.Len(t, members.GetMessages()[0].GetMembers(), len(current.Endpoints), fmt.Sprint(members))
}
