// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestExponent(t *testing.T) {
	t.Parallel()

	resources := columns()[0]
	assert.Equal(t, "1.00", exponent(resources, row{Nodes: 10, Resources: 50}, row{Nodes: 100, Resources: 500}))
	assert.Equal(t, "2.00", exponent(resources, row{Nodes: 10, Resources: 5}, row{Nodes: 100, Resources: 500}))
	state := columns()[13]
	require.Equal(t, "state, KB", state.name)
	assert.Empty(t, exponent(state, row{Nodes: 10, State: 5, IsUp: true}, row{Nodes: 100}), "planned only")
}

func TestRows(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "rows.json")
	none, err := readRows(path)
	require.NoError(t, err)
	rows := with(with(with(none, row{Nodes: 6, Resources: 47}), row{Nodes: 1}), row{Nodes: 6, Resources: 48})
	require.NoError(t, writeRows(path, rows))
	again, err := readRows(path)
	require.NoError(t, err)
	assert.Equal(t, []row{{Nodes: 1}, {Nodes: 6, Resources: 48}}, again, "by number of nodes, the newest figures")
	assert.Contains(t, further(again), "from 1 nodes to 6 each further node costs 9.6 resources")
}

func TestWay(t *testing.T) {
	t.Parallel()

	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	said := way([]event{
		{Op: "talos.bootstrap", Object: "node/a", Start: at(9), End: at(9), Attrs: map[string]string{"vm": "1"}},
		{Op: "pve.qmcreate", Object: "qmcreate/1", Start: at(5), End: at(7)},
		{Op: "pve.qmcreate", Object: "qmcreate/2", Start: at(5), End: at(8)},
		{Op: "pve.download", Object: "download/x", Start: at(1), End: at(5)},
	}, at(0), at(12))
	assert.Contains(t, said, "3.0 s lie between these steps, 3.0 s after the last one")
	assert.NotContains(t, said, "8.0 s", "of another node")
}

func TestNecessary(t *testing.T) {
	t.Parallel()

	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	events := []event{
		{Op: "pve.download", Object: "download/x", Start: at(1), End: at(61)},
		{Op: "pve.qmcreate", Object: "qmcreate/1", Start: at(61), End: at(81)},
		{Op: "pve.qmcreate", Object: "qmcreate/2", Start: at(61), End: at(71)},
		{Op: "talos.bootstrap", Object: "node/a", Start: at(9), End: at(9), Attrs: map[string]string{"vm": "1"}},
		{Op: "kubernetes.start", Object: "cluster/c", Start: at(100), End: at(110)},
	}
	assert.Equal(t, (60+20+20+4+10)*time.Second, necessary(events, 1))
	events = append(events, event{Op: "etcd.join", Object: "node/b", Attrs: map[string]string{"vm": "2"}, Start: at(110), End: at(111)})
	assert.Equal(t, (60+20+20+4+10+20)*time.Second, necessary(events, 1), "the second control plane joins when the first one serves")
}

func TestCount(t *testing.T) {
	t.Parallel()

	all, managed, err := count(`{"steps": [
		{"urn": "urn:pulumi:s::p::pulumi:pulumi:Stack::p-s"},
		{"urn": "urn:pulumi:s::p::talos-proxmox:components:ProxmoxNode::n"},
		{"urn": "urn:pulumi:s::p::talos-proxmox:components:ProxmoxNode$pulumi:index:Stash::n-guard"},
		{"urn": "urn:pulumi:s::p::talos-proxmox:components:ProxmoxNode$proxmoxve:VM/virtualMachine:VirtualMachine::n-vm"}
	]}`)
	require.NoError(t, err)
	assert.Equal(t, 4, all)
	assert.Equal(t, 1, managed)
}

func TestChain(t *testing.T) {
	t.Parallel()

	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	assert.Equal(t, 21*time.Second, chain([]event{
		{Op: "pve.download", Object: "download/x", Start: at(0), End: at(5)},
		{Op: "pve.qmcreate", Object: "qmcreate/1", Start: at(5), End: at(7)},
		{Op: "pve.qmcreate", Object: "qmcreate/2", Start: at(5), End: at(6)},
		{Op: "talos.boot", Object: "vm/1", Start: at(7), End: at(10)},
		{Op: "talos.install", Object: "node/a", Start: at(20), End: at(27), Attrs: map[string]string{"vm": "1"}},
		{Op: "kubernetes.start", Object: "cluster/c", Start: at(30), End: at(34)},
		{Op: "pve.qmcreate", Object: "qmcreate/3", Start: at(5), End: at(90), Error: "no"},
	}))
}

func TestPage(t *testing.T) {
	t.Parallel()

	rows := []row{{Nodes: 10, Resources: 50, IsUp: true, State: 1000}, {Nodes: 100, Resources: 500}}
	assert.Contains(t, pageTable(rows), "| Nodes | 10 | 100 | grows by |\n|---|---:|---:|---:|\n| resources | 50 | 500 | 1.00 |\n")
	assert.Contains(t, pageTable(rows), "| state, KB | 1 | - |  |\n")

	page := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(page, []byte("before\n"+pageBegin+"old\n"+pageEnd+"after\n"), 0o600))
	require.NoError(t, writePage(page, rows))
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Equal(t, "before\n"+pageBegin+pageTable(rows)+pageEnd+"after\n", string(text))
	require.NoError(t, os.WriteFile(page, []byte("no marks"), 0o600))
	require.ErrorContains(t, writePage(page, rows), "has no marks to write between")
}

// TestPerformancePage holds the table and the picture of docs/performance.md against what was measured.
func TestPerformancePage(t *testing.T) {
	t.Parallel()

	docs := filepath.Join("..", "..", "docs")
	rows, err := readRows(filepath.Join(docs, "performance.json"))
	require.NoError(t, err)
	require.NotEmpty(t, rows)
	page, err := os.ReadFile(filepath.Join(docs, "performance.md"))
	require.NoError(t, err)
	assert.Contains(t, string(page), pageBegin+pageTable(rows)+pageEnd)
	picture, err := os.ReadFile(filepath.Join(docs, "pictures", "performance.svg"))
	require.NoError(t, err)
	assert.Equal(t, draw(rows), string(picture))
}

func TestCPUOf(t *testing.T) {
	t.Parallel()

	assert.Equal(t, 1500*time.Millisecond, cpuOf("42 (lab (of mine)) S 1 2 3 4 5 6 7 8 9 10 100 50 0 0 20"))
	assert.Zero(t, cpuOf("42 (lab)"))
}
