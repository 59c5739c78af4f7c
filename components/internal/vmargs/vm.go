// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package vmargs makes the arguments of the Proxmox provider's resources from the settings of a node.
package vmargs

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/vm"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/internal/image"
	nodevm "github.com/talos-proxmox/talos-proxmox/internal/vm"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// VM returns the arguments of the node's VM. Blocks are always written in full: the provider fills omitted
// ones with devices nobody asked for.
func VM(node Node, disks vm.VirtualMachineDiskArray, devices HostDevices) *vm.VirtualMachineArgs {
	n := node.Node
	args := &vm.VirtualMachineArgs{
		Name:        pulumi.String(n.Name),
		NodeName:    pulumi.String(*n.Host),
		VmId:        pulumi.IntPtrFromPtr(n.VMID),
		Description: pulumi.StringPtrFromPtr(n.Description),
		Tags:        pulumi.ToStringArray(Tags(node)),
		PoolId:      pulumi.StringPtrFromPtr(n.Pool),

		Started:       pulumi.Bool(true),
		OnBoot:        pulumi.Bool(*n.OnBoot),
		StopOnDestroy: pulumi.Bool(true),
		Protection:    pulumi.Bool(*n.Protection),
		Migrate:       pulumi.Bool(*n.Migrate),

		Acpi:             pulumi.Bool(*n.ACPI),
		Bios:             pulumi.String(*n.BIOS),
		Machine:          pulumi.String(nodevm.Chipset(n, node.Image)),
		ScsiHardware:     pulumi.String(*n.SCSIHardware),
		TabletDevice:     pulumi.Bool(*n.Tablet),
		KvmArguments:     pulumi.StringPtrFromPtr(n.KVMArguments),
		HookScriptFileId: pulumi.StringPtrFromPtr(n.HookScript),
		OperatingSystem:  vm.VirtualMachineOperatingSystemArgs{Type: pulumi.String(*n.OSType)},

		Cpu:            cpu(n, node.Image),
		Memory:         memory(n),
		Numas:          numas(n),
		Agent:          agent(n),
		Startup:        startup(n.Startup),
		Vga:            vga(n),
		SerialDevices:  serials(n),
		Watchdog:       watchdog(n.Watchdog),
		NetworkDevices: networkDevices(n),
		Initialization: initialization(node),

		BootOrders: pulumi.ToStringArray(nodevm.BootOrder(n, node.Image)),
		Cdrom:      cdrom(node),
		Disks:      disks,
		EfiDisk:    efiDisk(n),
		TpmState:   tpm(n.TPM),
		Hostpcis:   devices.PCI,
		Usbs:       devices.USB,
	}
	timeouts(args, *n.Timeouts)
	// A new one with each run, which counts only when the VM is created: see [Ignored].
	args.Smbios = vm.VirtualMachineSmbiosArgs{Uuid: pulumi.String(uuid.NewString())}

	return args
}

// cdrom returns the CD drive with the image's file, which is swapped in place, so that no VM names a file
// that is gone. A VM that boots a disk image has an empty drive: the provider cannot remove one, and keeps
// wanting to add one that is left out. ARM machines have no IDE.
func cdrom(node Node) vm.VirtualMachineCdromPtrInput {
	if nodevm.ARM(node.Image) {
		return nil
	}
	cd := vm.VirtualMachineCdromArgs{
		Enabled:   pulumi.Bool(true),
		Interface: pulumi.String(nodevm.CDInterface),
		FileId:    node.BootFile.ToStringOutput().ToStringPtrOutput(),
	}
	if !image.ISO(node.Image) || !*node.Node.CDROM {
		cd.FileId = pulumi.String(nodevm.EmptyCD)
	}

	return cd
}

// Tags returns the VM's tags as Proxmox VE stores them: lower case, each once, sorted.
func Tags(node Node) []string {
	all := slices.Concat([]string{spec.Value(node.Cluster.Name)}, node.Cluster.Tags, node.Node.Tags)
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
			Policy:    pulumi.String(spec.Value(node.Policy)),
		})
	}
	if all == nil {
		return nil
	}

	return all
}

// agent returns the guest agent with a short timeout: where the agent does not answer, every refresh would
// wait for it, and nothing here reads what it reports.
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
	v := spec.Value(n.VGA)

	return vm.VirtualMachineVgaArgs{
		Type:      pulumi.String(spec.Value(v.Type)),
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

// MachineID returns a text that changes when the VM is recreated, and at no other time: the UUID that it was
// created with; empty for a VM that was created without one.
func MachineID(v *vm.VirtualMachine) pulumi.StringOutput {
	// v.Smbios will not do: where the state has none, the SDK takes the inputs of this run for it, which are not
	// the VM's, and in a preview an unknown value.
	return pulumi.InternalGetRawOutputs(&v.ResourceState).ApplyT(func(raw any) string {
		outputs, _ := raw.(resource.PropertyMap)
		if smbios := outputs["smbios"]; smbios.IsObject() && smbios.ObjectValue()["uuid"].IsString() {
			return smbios.ObjectValue()["uuid"].StringValue()
		}

		return ""
	}).(pulumi.StringOutput)
}
