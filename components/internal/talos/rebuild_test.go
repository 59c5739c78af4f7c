// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/talos-proxmox/talos-proxmox/components/internal/node"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/vm"
)

// machinesOf returns what is remembered of machines.
func machinesOf(machines map[string]vm.Identity) node.Machines {
	remembered := node.Machines{}
	for name, id := range machines {
		remembered[name] = vm.Machine{Hostname: name, VM: id}
	}

	return remembered
}

func TestReplacedMachines(t *testing.T) {
	t.Parallel()

	plane := vm.Identity{Role: "controlplane", Host: "pve1", Migrate: true, VMID: 800, Address: "10.0.0.1"}
	worker := vm.Identity{Role: "worker", Host: "pve1", VMID: 900, Address: "10.0.0.2"}
	was := machinesOf(map[string]vm.Identity{"ctrl-00": plane, "work-00": worker, "work-01": worker})

	anew, moved, host := plane, plane, worker
	anew.Rebuild, moved.Host, host.Host = 1, "pve2", "pve2"
	for name, test := range map[string]struct {
		now  map[string]vm.Identity
		want []cluster.Member
	}{
		"nothing":              {map[string]vm.Identity{"ctrl-00": plane, "work-00": worker}, nil},
		"a machine that moves": {map[string]vm.Identity{"ctrl-00": moved}, nil},
		"a new node":           {map[string]vm.Identity{"work-02": host}, nil},
		"a rebuild":            {map[string]vm.Identity{"ctrl-00": anew}, []cluster.Member{{Name: "ctrl-00", Hostname: "ctrl-00", Address: "10.0.0.1", ControlPlane: true}}},
		"another host":         {map[string]vm.Identity{"work-00": host}, []cluster.Member{{Name: "work-00", Hostname: "work-00", Address: "10.0.0.2"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			leaving, planes := replacedMachines(was, machinesOf(test.now))
			assert.Equal(t, test.want, leaving)
			assert.Equal(t, 1, planes)
		})
	}
}

func TestRefuseRebuild(t *testing.T) {
	t.Parallel()

	plane := func(name string) cluster.Member { return cluster.Member{Name: name, ControlPlane: true} }
	worker := func(name string) cluster.Member { return cluster.Member{Name: name} }
	for name, test := range map[string]struct {
		leaving         []cluster.Member
		planes, workers int
		want            string
	}{
		"nobody":                       {nil, 1, 1, ""},
		"one of three":                 {[]cluster.Member{plane("a")}, 3, 1, ""},
		"a worker":                     {[]cluster.Member{worker("w")}, 1, 1, ""},
		"two workers where two may":    {[]cluster.Member{worker("v"), worker("w")}, 1, 2, ""},
		"two workers where one may":    {[]cluster.Member{worker("v"), worker("w")}, 1, 1, "the machines of v, w would be replaced in one run: lifecycle.maxUnavailable lets go of 1; replace some, run up, then go on with the next"},
		"two control planes":           {[]cluster.Member{plane("a"), plane("b")}, 3, 5, "the machines of a, b would be replaced in one run: a control plane goes alone; replace a, run up, then go on with the next"},
		"a control plane and a worker": {[]cluster.Member{plane("a"), worker("w")}, 3, 5, "the machines of a, w would be replaced in one run: a control plane goes alone; replace a, run up, then go on with the next"},
		"the only control plane": {
			[]cluster.Member{plane("a")}, 1, 1,
			"a is the cluster's only control plane: with its machine goes all that the cluster holds; add control planes first, " +
				"or restore the cluster from a snapshot on the new machine, as docs/lifecycle.md says",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			err := refuseRebuild(test.leaving, test.planes, test.workers)
			if test.want == "" {
				assert.NoError(t, err)
			} else {
				assert.EqualError(t, err, test.want)
			}
		})
	}
}
