// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package vmargs

import (
	"fmt"
	"slices"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/vm"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/internal/image"
	nodevm "github.com/talos-proxmox/talos-proxmox/internal/vm"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Disks returns the VM's disks, the one with the system first. kept has the paths of the disks that another
// VM holds, by name.
func Disks(node Node, kept map[string]pulumi.StringPtrInput) vm.VirtualMachineDiskArray {
	system := disk(*node.Node.OSDisk)
	if !image.ISO(node.Image) {
		system.FileId = node.BootFile.ToStringOutput().ToStringPtrOutput()
	}
	all := vm.VirtualMachineDiskArray{system}
	for _, data := range node.Node.DataDisks() {
		args := disk(data.Disk)
		args.PathInDatastore = kept[data.Name]
		all = append(all, args)
	}

	return all
}

// Holder returns the VM that owns the disks which outlive the node's VM, the names of those disks in order,
// and what of it the provider must ignore; nil when no disk is kept. Proxmox VE removes with a VM the volumes
// that belong to it, and no others. The holder never starts.
func Holder(node Node) (args *vm.VirtualMachineArgs, names, ignored []string) {
	n := node.Node
	disks := vm.VirtualMachineDiskArray{}
	var kept []spec.Disk
	for _, data := range nodevm.KeptDisks(n) {
		disks = append(disks, disk(data.Disk))
		kept, names = append(kept, data.Disk), append(names, data.Name)
	}
	if len(disks) == 0 {
		return nil, nil, nil
	}
	args = &vm.VirtualMachineArgs{
		Name:            pulumi.String(n.Name + "-data"),
		NodeName:        pulumi.String(*n.Host),
		VmId:            pulumi.Int(*n.DataVMID),
		Description:     pulumi.String(fmt.Sprintf("Holds the data disks of %s, which outlive its VM. Never start it.", n.Name)),
		Tags:            pulumi.ToStringArray(Tags(node)),
		PoolId:          pulumi.StringPtrFromPtr(n.Pool),
		Started:         pulumi.Bool(false),
		OnBoot:          pulumi.Bool(false),
		StopOnDestroy:   pulumi.Bool(true),
		ScsiHardware:    pulumi.String(*n.SCSIHardware),
		OperatingSystem: vm.VirtualMachineOperatingSystemArgs{Type: pulumi.String(*n.OSType)},
		NetworkDevices:  vm.VirtualMachineNetworkDeviceArray{},
		SerialDevices:   vm.VirtualMachineSerialDeviceArray{},
		Disks:           disks,
	}

	// It has no CD drive, which the provider would add, in a way that Proxmox VE refuses.
	return args, names, append(withoutLimits(kept), "cdrom")
}

// Ignored returns the properties of the VM whose changes the provider must ignore: the file that the first
// disk was imported from, the size of disks that the holder owns, which alone can grow them, speeds without
// a limit, and what the hypervisor itself changes. So that no VM is replaced because somebody changed it by
// hand, what the provider replaces a VM for is ignored too, unless allowReplace names the field.
func Ignored(node Node, allowReplace []string) []string {
	n := node.Node
	ignored := []string{"disks[0].fileId", "template", "smbios"}
	permitted := func(field string) bool {
		return slices.Contains(allowReplace, field) || slices.Contains(allowReplace, "*")
	}
	for field, property := range map[string]string{"efiDisk": "efiDisk", "tpm": "tpmState"} {
		if !permitted(field) {
			ignored = append(ignored, property)
		}
	}
	slices.Sort(ignored)
	all := []spec.Disk{*n.OSDisk}
	for i, data := range n.DataDisks() {
		if spec.Value(data.KeepOnRebuild) {
			ignored = append(ignored, fmt.Sprintf("disks[%d].size", i+1))
		}
		all = append(all, data.Disk)
	}
	ignored = append(ignored, withoutLimits(all)...)
	if nodevm.ARM(node.Image) {
		// There is no CD drive, which the provider would add, in a way that Proxmox VE refuses.
		ignored = append(ignored, "cdrom")
	}
	switch {
	case n.HA != nil:
		// High availability moves, starts and stops the VM by itself.
		ignored = append(ignored, "nodeName", "started")
	case !*n.Migrate && !permitted("host"):
		ignored = append(ignored, "nodeName")
	}

	return ignored
}

// withoutLimits returns the paths of speeds without a limit: the provider wants to write its zeros for ever,
// and does not find them when it reads, since it knows only speeds above zero.
func withoutLimits(disks []spec.Disk) []string {
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
		Iothread:    pulumi.Bool(spec.Value(d.Iothread)),
		Ssd:         pulumi.Bool(spec.Value(d.SSD)),
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

// onOff returns how Proxmox VE writes whether discards are passed on.
func onOff(on bool) string {
	if on {
		return "on"
	}

	return "ignore"
}
