// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/spec"
	"github.com/talos-proxmox/talos-proxmox/stack"
)

// fleet generates a random cluster: named workers, members known by their addresses, and a counted pool
// with numbers left out.
type fleet struct {
	named   []int
	members []int
	count   int
	skip    []int
}

func (f fleet) text() string {
	var b strings.Builder
	b.WriteString(`config:
  talos-proxmox:proxmox: {hosts: {pve1: {zone: a}, pve2: {zone: b}, pve3: {zone: c}}}
  talos-proxmox:image: {extensions: [qemu-guest-agent]}
  talos-proxmox:cluster: {name: fleet, vmIdBase: 1000, podSubnets: [10.128.0.0/9]}
  talos-proxmox:defaults: {all: {networks: {lan: {subnet: 10.0.0.0/16, gateway: 10.0.0.1}}}}
  talos-proxmox:nodes:
    cp-1: {role: controlplane, vmId: 900, networks: {lan: {address: 10.0.0.11}}}
`)
	for _, n := range f.named {
		// Half of them have no number at their end, and go where their name's hash points.
		name := fmt.Sprintf("named-%d", n)
		if n%2 == 0 {
			name += "x"
		}
		fmt.Fprintf(&b, "    %s: {role: worker, vmId: %d, networks: {lan: {address: 10.0.2.%d}}}\n", name, 5000+n, n)
	}
	b.WriteString("  talos-proxmox:pools:\n")
	if f.count > 0 {
		fmt.Fprintf(&b, "    counted: {role: worker, count: %d, skip: %s, networks: {lan: {address: 10.0.3.1}}}\n", f.count, list(f.skip))
	}
	if len(f.members) > 0 {
		b.WriteString("    listed:\n      role: worker\n      vmIdBase: 20000\n      hosts: [pve2, pve3]\n      members:\n")
		for _, m := range f.members {
			fmt.Fprintf(&b, "        - {networks: {lan: {address: 10.0.4.%d}}}\n", m)
		}
	}
	if f.count == 0 && len(f.members) == 0 {
		return strings.TrimSuffix(b.String(), "  talos-proxmox:pools:\n")
	}

	return b.String()
}

func list(numbers []int) string {
	return "[" + strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers), " ", ", "), "[]") + "]"
}

// edit adds or removes one node somewhere.
func (f fleet) edit(r *rand.Rand) fleet {
	f.named, f.members, f.skip = slices.Clone(f.named), slices.Clone(f.members), slices.Clone(f.skip)
	toggle := func(in []int) []int {
		n := 1 + r.IntN(60)
		if i := slices.Index(in, n); i >= 0 {
			return slices.Delete(in, i, i+1)
		}

		return slices.Insert(in, r.IntN(len(in)+1), n)
	}
	switch r.IntN(4) {
	case 0:
		f.named = toggle(f.named)
	case 1:
		f.members = toggle(f.members)
	case 2:
		f.count++
	default: // a counted node leaves from the middle
		if f.count > 0 {
			number := 1 + r.IntN(f.count)
			if !slices.Contains(f.skip, number) {
				f.skip = append(f.skip, number)
				f.count--
			}
		}
	}

	return f
}

// byName returns the nodes of a fleet; the order in which the file lists them is another each time.
func byName(t *testing.T, f fleet) map[string]spec.NamedNode {
	t.Helper()
	s := source(t, f.text())
	loaded, err := stack.Load(s)
	require.NoError(t, err)
	nodes := map[string]spec.NamedNode{}
	for _, n := range loaded.Nodes {
		nodes[n.Name] = n
	}

	return nodes
}

// TestNodesAreSticky makes random edits and demands that no node but the one that came or went
// changes in anything: name, id, address, MAC, host, slots.
func TestNodesAreSticky(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 1))
		f := fleet{count: 3, named: []int{1, 2, 3}, members: []int{1, 2, 3}}
		before := byName(t, f)
		for range 25 {
			f = f.edit(r)
			after := byName(t, f)
			gone, came := 0, 0
			for name, node := range before {
				if _, stays := after[name]; !stays {
					gone++

					continue
				}
				assert.Equal(t, node, after[name], "seed %d: %s", seed, f.text())
			}
			for name := range after {
				if _, was := before[name]; !was {
					came++
				}
			}
			assert.LessOrEqual(t, gone+came, 1, "seed %d: %s", seed, f.text())
			before = after
		}
	}
}

func TestCountedPoolPlacesByNumber(t *testing.T) {
	t.Parallel()
	nodes := byName(t, fleet{count: 4, skip: []int{2}})
	got := map[string]string{}
	for name, n := range nodes {
		got[name] = fmt.Sprintf("%s %d %s %s", *n.Host, *n.VMID, n.Address(), *n.Zone)
	}
	assert.Equal(t, map[string]string{
		"cp-1":       "pve1 900 10.0.0.11 a",
		"counted-01": "pve1 1101 10.0.3.1 a",
		"counted-03": "pve3 1103 10.0.3.3 c",
		"counted-04": "pve1 1104 10.0.3.4 a",
		"counted-05": "pve2 1105 10.0.3.5 b",
	}, got)
}
