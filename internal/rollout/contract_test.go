// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster/clustertest"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
	"github.com/talos-proxmox/talos-proxmox/internal/versions"
)

func TestContractWaitsForEveryNode(t *testing.T) {
	t.Parallel()
	c := clustertest.Describe(3, 1)
	fake := clustertest.Healthy(c)
	contract, err := versions.ParseContract("v1.12")
	require.NoError(t, err)
	all := func() error {
		return rollout.CheckContractSupported(context.Background(), fake, c, contract, time.Second)
	}
	require.NoError(t, all())

	last := c.Members[len(c.Members)-1]
	fake.Change(last.Address, func(n *clustertest.Node) { n.Version = "v1.11.6" })
	assert.EqualError(t, all(), "node "+last.String()+": contract v1.12 is newer than Talos v1.11.6: "+
		"upgrade every node first, then raise the contract")

	fake.Change(last.Address, func(n *clustertest.Node) { n.Unreachable = true })
	assert.EqualError(t, all(), "node "+last.String()+": asking what it runs: connection refused")

	c.Members[len(c.Members)-1].Hostname = "joins-later"
	assert.NoError(t, all(), "who joins later gets the new version")
}
