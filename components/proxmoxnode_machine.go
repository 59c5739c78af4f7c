// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/vm"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/internal/image"
	nodevm "github.com/talos-proxmox/talos-proxmox/internal/vm"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// machine is the whole VM. Blocks are always said in full: the provider fills omitted ones with
// devices nobody asked for.
func (b *nodeBuilder) machine(disks vm.VirtualMachineDiskArray, devices passthrough) *vm.VirtualMachineArgs {
	n := b.args.Node
	args := &vm.VirtualMachineArgs{
		Name:        pulumi.String(n.Name),
		NodeName:    pulumi.String(*n.Host),
		VmId:        pulumi.IntPtrFromPtr(n.VMID),
		Description: pulumi.StringPtrFromPtr(n.Description),
		Tags:        pulumi.ToStringArray(tags(b.args.Cluster, n)),
		PoolId:      pulumi.StringPtrFromPtr(n.Pool),

		Started:       pulumi.Bool(true),
		OnBoot:        pulumi.Bool(*n.OnBoot),
		StopOnDestroy: pulumi.Bool(true),
		Protection:    pulumi.Bool(*n.Protection),
		Migrate:       pulumi.Bool(*n.Migrate),

		Acpi:             pulumi.Bool(*n.ACPI),
		Bios:             pulumi.String(*n.BIOS),
		Machine:          pulumi.String(nodevm.Chipset(n, b.args.Image)),
		ScsiHardware:     pulumi.String(*n.SCSIHardware),
		TabletDevice:     pulumi.Bool(*n.Tablet),
		KvmArguments:     pulumi.StringPtrFromPtr(n.KVMArguments),
		HookScriptFileId: pulumi.StringPtrFromPtr(n.HookScript),
		OperatingSystem:  vm.VirtualMachineOperatingSystemArgs{Type: pulumi.String(*n.OSType)},

		Cpu:            cpu(n, b.args.Image),
		Memory:         memory(n),
		Numas:          numas(n),
		Agent:          agent(n),
		Startup:        startup(n.Startup),
		Vga:            vga(n),
		SerialDevices:  serials(n),
		Watchdog:       watchdog(n.Watchdog),
		NetworkDevices: networkDevices(n),
		Initialization: b.initialization(),

		BootOrders: pulumi.ToStringArray(nodevm.BootOrder(n, b.args.Image)),
		Cdrom:      b.cdrom(),
		Disks:      disks,
		EfiDisk:    efiDisk(n),
		TpmState:   tpm(n.TPM),
		Hostpcis:   devices.pci,
		Usbs:       devices.usb,
	}
	timeouts(args, *n.Timeouts)

	return args
}

// cdrom follows the image: its file is swapped in place, so that no VM names a file that is gone. The
// drive is there, empty, with a disk image too: the provider cannot take one away, and keeps wanting to
// add one that is not said. ARM machines have no IDE.
func (b *nodeBuilder) cdrom() vm.VirtualMachineCdromPtrInput {
	if nodevm.ARM(b.args.Image) {
		return nil
	}
	cd := vm.VirtualMachineCdromArgs{
		Enabled:   pulumi.Bool(true),
		Interface: pulumi.String(nodevm.CDInterface),
		FileId:    b.args.ImageFileID.ToStringOutput().ToStringPtrOutput(),
	}
	if !image.ISO(b.args.Image) || !*b.args.Node.CDROM {
		cd.FileId = pulumi.String(nodevm.EmptyCD)
	}

	return cd
}

// tags are what Proxmox makes of them: lower case, each once, in order.
func tags(cluster spec.Cluster, n spec.NamedNode) []string {
	all := slices.Concat([]string{spec.Or(cluster.Name, "")}, cluster.Tags, n.Tags)
	for i, tag := range all {
		all[i] = strings.ToLower(tag)
	}
	slices.Sort(all)

	return slices.DeleteFunc(slices.Compact(all), func(tag string) bool { return tag == "" })
}

func cpu(n spec.NamedNode, img spec.Image) vm.VirtualMachineCpuArgs {
	args := vm.VirtualMachineCpuArgs{
		Type:     pulumi.String(nodevm.CPUType(n, img)),
		Cores:    pulumi.Int(*n.CPU),
		Sockets:  pulumi.Int(*n.Sockets),
		Units:    pulumi.Int(*n.CPUUnits),
		Numa:     pulumi.Bool(*n.NUMA),
		Limit:    pulumi.IntPtrFromPtr(n.CPULimit),
		Affinity: pulumi.StringPtrFromPtr(n.CPUAffinity),
	}
	if len(n.CPUFlags) > 0 {
		args.Flags = pulumi.ToStringArray(n.CPUFlags)
	}
	if nodevm.ARM(img) {
		args.Architecture = pulumi.String("aarch64")
	}

	return args
}

func memory(n spec.NamedNode) vm.VirtualMachineMemoryArgs {
	args := vm.VirtualMachineMemoryArgs{
		Dedicated:     pulumi.Int(int(*n.Memory)),
		Floating:      pulumi.Int(int(*n.Balloon)),
		Hugepages:     pulumi.StringPtrFromPtr(n.Hugepages),
		KeepHugepages: pulumi.BoolPtrFromPtr(n.KeepHugepages),
	}
	if n.SharedMemory != nil {
		args.Shared = pulumi.Int(int(*n.SharedMemory))
	}

	return args
}

func numas(n spec.NamedNode) vm.VirtualMachineNumaArrayInput {
	var all vm.VirtualMachineNumaArray
	for i, node := range n.NUMANodes {
		all = append(all, vm.VirtualMachineNumaArgs{
			Device:    pulumi.String("numa" + strconv.Itoa(i)),
			Cpus:      pulumi.String(node.CPUs),
			Memory:    pulumi.Int(int(node.Memory)),
			Hostnodes: pulumi.StringPtrFromPtr(node.HostNodes),
			Policy:    pulumi.String(spec.Or(node.Policy, "preferred")),
		})
	}
	if all == nil {
		return nil
	}

	return all
}

// agent waits shortly: where the agent does not answer, every plan would wait for it, and nothing
// here reads what it says.
func agent(n spec.NamedNode) vm.VirtualMachineAgentArgs {
	return vm.VirtualMachineAgentArgs{
		Enabled: pulumi.Bool(*n.Agent),
		Timeout: pulumi.String(time.Duration(*n.AgentTimeout).String()),
		Trim:    pulumi.Bool(false),
		Type:    pulumi.String("virtio"),
	}
}

func startup(s *spec.Startup) vm.VirtualMachineStartupPtrInput {
	if s == nil {
		return nil
	}

	return vm.VirtualMachineStartupArgs{
		Order:     pulumi.IntPtrFromPtr(s.Order),
		UpDelay:   pulumi.IntPtrFromPtr(s.UpDelay),
		DownDelay: pulumi.IntPtrFromPtr(s.DownDelay),
	}
}

func vga(n spec.NamedNode) vm.VirtualMachineVgaArgs {
	v := spec.Or(n.VGA, spec.VGA{})

	return vm.VirtualMachineVgaArgs{
		Type:      pulumi.String(spec.Or(v.Type, "std")),
		Memory:    pulumi.IntPtrFromPtr(v.Memory),
		Clipboard: pulumi.StringPtrFromPtr(v.Clipboard),
	}
}

func serials(n spec.NamedNode) vm.VirtualMachineSerialDeviceArray {
	if !*n.SerialConsole {
		return vm.VirtualMachineSerialDeviceArray{}
	}

	return vm.VirtualMachineSerialDeviceArray{vm.VirtualMachineSerialDeviceArgs{Device: pulumi.String("socket")}}
}

func watchdog(w *spec.Watchdog) vm.VirtualMachineWatchdogPtrInput {
	if w == nil {
		return nil
	}

	return vm.VirtualMachineWatchdogArgs{
		Enabled: pulumi.Bool(true),
		Model:   pulumi.String(*w.Model),
		Action:  pulumi.String(*w.Action),
	}
}

func efiDisk(n spec.NamedNode) vm.VirtualMachineEfiDiskPtrInput {
	if *n.BIOS != "ovmf" {
		return nil
	}

	return vm.VirtualMachineEfiDiskArgs{
		DatastoreId:     pulumi.String(*n.EFIDisk.Datastore),
		FileFormat:      pulumi.String(*n.EFIDisk.Format),
		Type:            pulumi.String(*n.EFIDisk.Type),
		PreEnrolledKeys: pulumi.Bool(*n.EFIDisk.PreEnrolledKeys),
	}
}

func tpm(t *spec.TPM) vm.VirtualMachineTpmStatePtrInput {
	if t == nil {
		return nil
	}

	return vm.VirtualMachineTpmStateArgs{
		DatastoreId: pulumi.String(*t.Datastore),
		Version:     pulumi.String(*t.Version),
	}
}

func timeouts(args *vm.VirtualMachineArgs, t spec.VMTimeouts) {
	args.TimeoutCreate = pulumi.Int(*t.Create)
	args.TimeoutMigrate = pulumi.Int(*t.Migrate)
	args.TimeoutReboot = pulumi.Int(*t.Reboot)
	args.TimeoutShutdownVm = pulumi.Int(*t.Shutdown)
	args.TimeoutStartVm = pulumi.Int(*t.Start)
	args.TimeoutStopVm = pulumi.Int(*t.Stop)
}
