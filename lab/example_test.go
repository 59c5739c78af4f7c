// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package lab_test

import (
	"strings"
	"testing"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve"
	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/vm"
	"github.com/pulumi/pulumi/sdk/v3/go/auto"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab"
	"github.com/talos-proxmox/talos-proxmox/lab/site"
)

// program returns somebody's own: one VM with an empty disk.
func program(ctx *pulumi.Context) error {
	pve, err := proxmoxve.NewProvider(ctx, "pve", &proxmoxve.ProviderArgs{
		Endpoint: pulumi.String("https://pve1.example:8006/"),
	}, pulumi.Version("6.18.1"))
	if err != nil {
		return err
	}
	_, err = vm.NewVirtualMachine(ctx, "db", &vm.VirtualMachineArgs{
		NodeName: pulumi.String("pve1"), VmId: pulumi.Int(100), Name: pulumi.String("db"), StopOnDestroy: pulumi.Bool(true),
		Disks:          vm.VirtualMachineDiskArray{vm.VirtualMachineDiskArgs{Interface: pulumi.String("scsi0"), Size: pulumi.Int(20), FileFormat: pulumi.String("raw")}},
		NetworkDevices: vm.VirtualMachineNetworkDeviceArray{vm.VirtualMachineNetworkDeviceArgs{}},
		SerialDevices:  vm.VirtualMachineSerialDeviceArray{vm.VirtualMachineSerialDeviceArgs{}},
	}, pulumi.Provider(pve), pulumi.IgnoreChanges([]string{"cdrom", "disks[0].speed"})) // it wants to write them for ever

	return err
}

// The real engine drives a program inside the test, and the lab says what became of it.
func TestSomebodyElsesProgram(t *testing.T) {
	t.Parallel()

	l := lab.Start(t, lab.Hosts(site.HostDef{Name: "pve1", Cores: 8, MemoryMiB: 16384}))
	stack, err := auto.UpsertStackInlineSource(t.Context(), "dev", "mine", program, l.Workspace()...)
	require.NoError(t, err)

	_, err = stack.Up(t.Context())
	require.NoError(t, err)
	require.Len(t, l.Status().VMs, 1)
	assert.Equal(t, "db", l.Status().VMs[0].Name)
	assert.Equal(t, "running", l.Status().VMs[0].Status)

	again, err := stack.Preview(t.Context())
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"same": 3}, summary(again), "a second preview is empty")

	_, err = stack.Destroy(t.Context())
	require.NoError(t, err)
	assert.Empty(t, l.Status().VMs)
	assert.Equal(t, []string{"pve.qmcreate", "pve.qmstart", "pve.qmstop", "pve.qmdestroy"}, tasks(l))
}

func summary(r auto.PreviewResult) map[string]int {
	counts := map[string]int{}
	for op, n := range r.ChangeSummary {
		counts[string(op)] = n
	}

	return counts
}

// tasks returns what Proxmox VE did, in order.
func tasks(l *lab.Lab) []string {
	var ops []string
	for _, e := range l.Trace() {
		if strings.HasPrefix(e.Op, "pve.") {
			ops = append(ops, e.Op)
		}
	}

	return ops
}
