// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node_test

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/components/internal/node"
	"github.com/talos-proxmox/talos-proxmox/components/internal/stash"
	"github.com/talos-proxmox/talos-proxmox/internal/pulumitest"
	"github.com/talos-proxmox/talos-proxmox/internal/vm"
)

// A run that leaves the record out gets from the engine what the state had before.
func TestARecordThatIsLeftOutStopsTheVM(t *testing.T) {
	t.Parallel()

	disk := func(size int) map[string]vm.Disk {
		return map[string]vm.Disk{"scsi0": {Field: "osDisk", Size: size, Format: "raw"}}
	}
	before := vm.Identity{Host: "pve1", VMID: 301, Disks: disk(20)}
	for name, test := range map[string]struct {
		now   vm.Identity
		error string
	}{
		"the same":       {now: before},
		"a larger disk":  {now: vm.Identity{Host: "pve1", VMID: 301, Disks: disk(30)}},
		"a smaller disk": {now: vm.Identity{Host: "pve1", VMID: 301, Disks: disk(10)}, error: "a disk cannot shrink"},
		"a rebuild": {
			now:   vm.Identity{Host: "pve1", VMID: 301, Disks: disk(20), Rebuild: 1},
			error: "node cp-1: its VM would be replaced, and the node was not asked to leave",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := pulumitest.Recorder{State: func(args pulumi.MockResourceArgs) (string, resource.PropertyMap) {
				if args.Name != "machines" {
					return args.Name, args.Inputs
				}

				return args.Name, resource.PropertyMap{"input": resource.NewPropertyValue(map[string]any{
					"cp-1": map[string]any{"vm": map[string]any{"host": "pve1", "vmId": 301, "disks": map[string]any{
						"scsi0": map[string]any{"field": "osDisk", "size": 20, "format": "raw"},
					}}},
				})}
			}}
			err := r.Run(false, func(ctx *pulumi.Context) error {
				record, err := node.Remember(ctx, "machines", node.Machines{"cp-1": {VM: test.now}}, nil, stash.On[node.Machines]{})
				if err != nil {
					return err
				}
				_, err = pulumi.NewStash(ctx, "vm", &pulumi.StashArgs{Input: record.HostOf("cp-1", "pve1")})

				return err
			})
			registered, there := r.Get("vm")
			assert.Equal(t, test.error == "", there)
			if test.error == "" {
				require.NoError(t, err)
				assert.Equal(t, "pve1", registered.Inputs["input"].StringValue())

				return
			}
			assert.ErrorContains(t, err, test.error)
			assert.ErrorContains(t, err, "this run leaves out a step that this edit needs (--target, --exclude)")
		})
	}
}
