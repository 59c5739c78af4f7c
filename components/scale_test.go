// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components_test

import (
	"fmt"
	"math"
	"runtime"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/components"
	"github.com/talos-proxmox/talos-proxmox/internal/pulumitest"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// largeConfig returns a cluster of three control planes and otherwise workers, on ten hosts.
func largeConfig(nodes int) spec.Config {
	cfg := clusterConfig(3, 0)
	cfg.Proxmox.Endpoint, cfg.Proxmox.APIToken = spec.Ptr("https://pve.example.com:8006"), spec.Ptr(spec.NewSecret("root@pam!t=0"))
	cfg.Cluster.VIP, cfg.Cluster.VMIDBase = spec.Ptr("10.0.255.1"), nil
	cfg.Cluster.PodSubnets = []string{"10.128.0.0/12"} // a /24 for each node
	cfg.Proxmox.Hosts, cfg.Nodes = map[string]spec.Host{}, nil
	for i := range nodes {
		role, host := spec.Worker, fmt.Sprintf("pve-%d", i%10)
		if i < 3 {
			role = spec.ControlPlane
		}
		cfg.Proxmox.Hosts[host] = spec.Host{Datastore: spec.Ptr("local-lvm")}
		cfg.Nodes = append(cfg.Nodes, spec.NamedNode{Name: fmt.Sprintf("n-%04d", i), Node: spec.Node{
			Role: &role, Host: &host, VMID: spec.Ptr(1001 + i), VM: spec.VM{CPU: spec.Ptr(2), Memory: spec.Ptr(spec.MiB(4096))},
			Networks: map[string]spec.Network{"vmbr0": {
				Address: spec.Ptr(fmt.Sprintf("10.0.%d.%d/16", i/200, i%200+1)), Gateway: spec.Ptr("10.0.254.254"),
			}},
		}})
	}

	return cfg
}

// registerLarge registers a cluster of so many nodes and returns what was registered.
func registerLarge(tb testing.TB, nodes int) *pulumitest.Recorder {
	tb.Helper()

	state, err := talosAnswers(false)
	require.NoError(tb, err)
	r := &pulumitest.Recorder{State: state}
	require.NoError(tb, r.Run(false, func(ctx *pulumi.Context) error {
		_, err := components.NewCluster(ctx, "test", &components.ClusterArgs{Config: largeConfig(nodes)})

		return err
	}))

	return r
}

// TestTheProgramsWorkGrowsWithTheNodes counts what a program allocates for a cluster and for one of ten times its size,
// which the machine's speed has no part in. A step whose work grows with the square of the nodes shows.
func TestTheProgramsWorkGrowsWithTheNodes(t *testing.T) {
	const few, many, most = 33, 330, 1.1
	registerLarge(t, 3) // what is made once is made here
	measure := func(nodes int) (registered int, allocations, bytes float64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		registered = len(registerLarge(t, nodes).Names(""))
		runtime.ReadMemStats(&after)

		return registered, float64(after.Mallocs - before.Mallocs), float64(after.TotalAlloc - before.TotalAlloc)
	}
	small, allocations, bytes := measure(few)
	large, moreAllocations, moreBytes := measure(many)
	exponent := func(from, to float64) float64 { return math.Log(to/from) / math.Log(float64(many)/few) }

	assert.LessOrEqual(t, float64(large-small)/(many-few), 4.0, "resources for each further worker")
	t.Logf("%.0f allocations and %.0f bytes for each node at %d nodes; exponents %.2f and %.2f", moreAllocations/many, moreBytes/many, many,
		exponent(allocations, moreAllocations), exponent(bytes, moreBytes))
	assert.LessOrEqual(t, exponent(allocations, moreAllocations), most, "allocations")
	assert.LessOrEqual(t, exponent(bytes, moreBytes), most, "bytes")
}

func BenchmarkRegistration(b *testing.B) {
	for _, nodes := range []int{3, 33, 103, 303, 1003} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				registerLarge(b, nodes)
			}
		})
	}
}
