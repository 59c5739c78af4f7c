// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/stack"
)

// large returns a stack of three control planes, a pool of workers and as many named ones.
func large(workers int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `config:
  talos-proxmox:proxmox: {hosts: {pve1: {datastore: ssd, zone: a}, pve2: {datastore: ssd, zone: b}, pve3: {datastore: ssd, zone: c}}}
  talos-proxmox:image: {extensions: [qemu-guest-agent]}
  talos-proxmox:cluster: {name: large, vip: 10.0.0.5, vmIdBase: 10000, podSubnets: [10.128.0.0/9]}
  talos-proxmox:sizes: {large: {cpu: 16, memory: 65536, disks: {data: {size: 512}}}}
  talos-proxmox:defaults: {all: {networks: {lan: {bridge: vmbr0, subnet: 10.0.0.0/16, gateway: 10.0.0.1}}}, worker: {size: large, labels: {a: b}}}
  talos-proxmox:pools:
    cp: {role: controlplane, count: 3, networks: {lan: {address: 10.0.0.11}}}
    pool: {role: worker, count: %d, networks: {lan: {address: 10.0.1.1}}}
  talos-proxmox:nodes:
`, workers/2)
	for i := range workers - workers/2 {
		fmt.Fprintf(&b, "    named-%d: {role: worker, vmId: %d, networks: {lan: {address: 10.0.%d.%d}}}\n", i+1, 50000+i, 100+i/250, 1+i%250)
	}

	return b.String()
}

func largeSource(t testing.TB, workers int) stack.Source {
	t.Helper()
	text := large(workers)
	s := source(t, text)
	s.Dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(s.Dir, "Pulumi.test.yaml"), []byte(text), 0o600))

	return s
}

// BenchmarkLoad reads, expands and checks 1,003 nodes.
func BenchmarkLoad(b *testing.B) {
	s := largeSource(b, 1000)
	before := cpuTime(b)
	for b.Loop() {
		loaded, err := stack.Load(s)
		require.NoError(b, err)
		require.Len(b, loaded.Nodes, 1003)
	}
	b.ReportMetric(float64((cpuTime(b)-before).Milliseconds())/float64(b.N), "cpu-ms/op")
}

// cpuTime returns what the process has used so far, which other work on the machine does not change.
func cpuTime(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))

	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestThousandNodesAreQuick catches what is quadratic; the figure itself is the benchmark's.
func TestThousandNodesAreQuick(t *testing.T) {
	t.Parallel()
	s := largeSource(t, 1000)
	start := time.Now()
	_, err := stack.Load(s)
	require.NoError(t, err)
	assert.Less(t, time.Since(start), 10*time.Second)
}
