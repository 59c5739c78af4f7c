// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package health_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster/clustertest"
	"github.com/talos-proxmox/talos-proxmox/internal/health"
)

const nodeConfiguration = "version: v1alpha1\nmachine: {type: worker, token: abc.def, nodeLabels: {tier: gold}}\n"

func TestDriftNamesWhatWasChangedByHand(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(3, 1)
	c := clustertest.Healthy(d)
	var expected []health.Expected
	for _, m := range d.Members {
		c.Nodes[m.Address].Configuration = nodeConfiguration
		expected = append(expected, health.Expected{
			Member: m, Image: cluster.Image{Version: "v1.12.4", Schematic: "plain"},
			Configuration: []byte(nodeConfiguration), Kubernetes: "v1.35.0",
		})
	}
	drift := func() []string {
		found, err := health.Drift(t.Context(), c, d, expected, cluster.PollOptions{Call: time.Second})
		require.NoError(t, err)

		return found
	}
	require.Empty(t, drift())

	c.Nodes[clustertest.Address(1)].Version, c.Nodes[clustertest.Address(2)].Schematic = "v1.12.5", "other"
	c.Nodes[clustertest.Address(3)].Unreachable = true
	c.Nodes[clustertest.Address(4)].Configuration = "version: v1alpha1\nmachine: {type: worker, token: ghi.jkl, nodeLabels: {tier: silver}}\n"
	c.Nodes[clustertest.Address(1)].Members = []cluster.EtcdMember{
		{ID: 1, Hostname: "node-1"}, {ID: 2, Hostname: "node-2"}, {ID: 4, Hostname: "stranger", Addresses: []string{"10.0.0.9"}},
	}
	nodes := c.API.CoreV1().Nodes()
	_, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "stranger"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, nodes.Delete(t.Context(), "node-3", metav1.DeleteOptions{}))
	older, err := nodes.Get(t.Context(), "node-4", metav1.GetOptions{})
	require.NoError(t, err)
	older.Status.NodeInfo.KubeletVersion, older.Spec.Unschedulable = "v1.34.0", true
	older.Annotations = map[string]string{"talos-proxmox.dev/boots-next": "plain:v1.13.1"}
	_, err = nodes.Update(t.Context(), older, metav1.UpdateOptions{})
	require.NoError(t, err)

	assert.Equal(t, []string{
		"node-1 (10.0.0.1): Talos is v1.12.5, the stack has v1.12.4",
		"node-2 (10.0.0.2): the schematic is other, the stack has plain",
		"node-3 (10.0.0.3): it does not say what it runs: connection refused",
		"node-4 (10.0.0.4): configuration: machine.nodeLabels.tier is silver; it was gold",
		"node-4 (10.0.0.4): configuration: machine.token is (not shown); it was (not shown)",
		"etcd: it has a member stranger [10.0.0.9] that is no control plane of the stack",
		"etcd: node-3 (10.0.0.3) is no member",
		"Kubernetes: node node-4 is cordoned",
		"Kubernetes: node node-4 boots plain:v1.13.1 next, which an interrupted run installed",
		"Kubernetes: it has a node stranger that is none of the stack",
		"Kubernetes: node-3 (10.0.0.3) is no node",
		"node-4 (10.0.0.4): the kubelet is v1.34.0, the stack has v1.35.0",
	}, drift())
}
