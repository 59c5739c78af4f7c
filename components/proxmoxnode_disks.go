// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"fmt"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/vm"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/internal/image"
	nodevm "github.com/talos-proxmox/talos-proxmox/internal/vm"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// disks are the VM's disks, the one with the system first. Those that outlive the VM belong to a
// second one, the holder, which is nil when there are none.
func (b *nodeBuilder) disks(guard pulumi.Resource) (vm.VirtualMachineDiskArray, *vm.VirtualMachine, error) {
	n := b.args.Node
	holder, kept, err := b.holder(guard)
	if err != nil {
		return nil, nil, err
	}

	system := disk(*n.OSDisk)
	if !image.ISO(b.args.Image) {
		system.FileId = b.args.ImageFileID.ToStringOutput().ToStringPtrOutput()
	}
	all := vm.VirtualMachineDiskArray{system}
	for _, data := range n.DataDisks() {
		args := disk(data.Disk)
		if at, ok := kept[data.Name]; ok {
			args.PathInDatastore = holder.Disks.Index(pulumi.Int(at)).PathInDatastore()
		}
		all = append(all, args)
	}

	return all, holder, nil
}

// holder registers the VM that owns the disks which outlive the node's VM: Proxmox removes with a VM
// what belongs to it, and nothing else. It never starts. The result says where each disk is in it.
func (b *nodeBuilder) holder(guard pulumi.Resource) (*vm.VirtualMachine, map[string]int, error) {
	n := b.args.Node
	disks, at := vm.VirtualMachineDiskArray{}, map[string]int{}
	var kept []spec.Disk
	for i, data := range nodevm.KeptDisks(n) {
		disks = append(disks, disk(data.Disk))
		kept, at[data.Name] = append(kept, data.Disk), i
	}
	if len(disks) == 0 {
		return nil, nil, nil
	}

	opts := []pulumi.ResourceOption{
		pulumi.Parent(b.node), pulumi.DependsOn([]pulumi.Resource{guard}), pulumi.DeleteBeforeReplace(true),
		// It has no CD drive, which the provider would add, in a way that Proxmox VE refuses.
		pulumi.IgnoreChanges(append(unlimited(kept), "cdrom")),
	}
	if spec.Or(b.args.Cluster.Protect, false) {
		opts = append(opts, pulumi.Protect(true))
	}
	holder, err := vm.NewVirtualMachine(b.ctx, b.name+"-data", &vm.VirtualMachineArgs{
		Name:            pulumi.String(n.Name + "-data"),
		NodeName:        pulumi.String(*n.Host),
		VmId:            pulumi.Int(*n.DataVMID),
		Description:     pulumi.String(fmt.Sprintf("Holds the data disks of %s, which outlive its VM. Never start it.", n.Name)),
		Tags:            pulumi.ToStringArray(tags(b.args.Cluster, n)),
		PoolId:          pulumi.StringPtrFromPtr(n.Pool),
		Started:         pulumi.Bool(false),
		OnBoot:          pulumi.Bool(false),
		StopOnDestroy:   pulumi.Bool(true),
		ScsiHardware:    pulumi.String(*n.SCSIHardware),
		OperatingSystem: vm.VirtualMachineOperatingSystemArgs{Type: pulumi.String(*n.OSType)},
		NetworkDevices:  vm.VirtualMachineNetworkDeviceArray{},
		SerialDevices:   vm.VirtualMachineSerialDeviceArray{},
		Disks:           disks,
	}, opts...)
	if err != nil {
		return nil, nil, fmt.Errorf("registering the holder of the data disks: %w", err)
	}

	return holder, at, nil
}

// ignoredDisks are what of the VM's disks says nothing: the file the first was imported from, the size
// of disks whose owner is the holder, which alone can grow them, and speeds without a limit.
func ignoredDisks(n spec.NamedNode) []string {
	ignored := []string{"disks[0].fileId"}
	all := []spec.Disk{*n.OSDisk}
	for i, data := range n.DataDisks() {
		if spec.Or(data.KeepOnRebuild, false) {
			ignored = append(ignored, fmt.Sprintf("disks[%d].size", i+1))
		}
		all = append(all, data.Disk)
	}

	return append(ignored, unlimited(all)...)
}

// unlimited are the paths of speeds without a limit: the provider wants to write its zeros for ever,
// and does not see them when it reads (it knows speeds above zero alone).
func unlimited(disks []spec.Disk) []string {
	var paths []string
	for i, d := range disks {
		if !nodevm.Limited(d) {
			paths = append(paths, fmt.Sprintf("disks[%d].speed", i))
		}
	}

	return paths
}

func disk(d spec.Disk) vm.VirtualMachineDiskArgs {
	args := vm.VirtualMachineDiskArgs{
		Interface:   pulumi.String(d.Interface()),
		DatastoreId: pulumi.String(*d.Datastore),
		Size:        pulumi.Int(int(*d.Size)),
		FileFormat:  pulumi.String(*d.Format),
		Cache:       pulumi.String(*d.Cache),
		Aio:         pulumi.String(*d.AIO),
		Discard:     pulumi.String(onOff(*d.Discard)),
		Iothread:    pulumi.Bool(spec.Or(d.Iothread, false)),
		Ssd:         pulumi.Bool(spec.Or(d.SSD, false)),
		Backup:      pulumi.Bool(*d.Backup),
		Replicate:   pulumi.Bool(*d.Replicate),
		Serial:      pulumi.StringPtrFromPtr(d.Serial),
	}
	if s := d.Speed; nodevm.Limited(d) {
		args.Speed = vm.VirtualMachineDiskSpeedArgs{
			Read:           pulumi.IntPtrFromPtr(s.Read),
			ReadBurstable:  pulumi.IntPtrFromPtr(s.ReadBurst),
			Write:          pulumi.IntPtrFromPtr(s.Write),
			WriteBurstable: pulumi.IntPtrFromPtr(s.WriteBurst),
			IopsRead:       pulumi.IntPtrFromPtr(s.IOPSRead),
			IopsWrite:      pulumi.IntPtrFromPtr(s.IOPSWrite),
		}
	}

	return args
}

// onOff is how Proxmox says whether it passes discards on.
func onOff(on bool) string {
	if on {
		return "on"
	}

	return "ignore"
}
