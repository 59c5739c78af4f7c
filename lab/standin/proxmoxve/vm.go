// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmoxve

import (
	"maps"
	"slices"
	"strconv"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/vm"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

func virtualMachine() *bridge.Resource {
	return &bridge.Resource{
		Args: &vm.VirtualMachineArgs{}, State: vm.VirtualMachine{},
		// The provider fails on a machine without the block.
		Required: []string{"networkDevices"},
		Defaults: vmDefaults(),
		Secrets:  []string{"initialization.userAccount.password"},
		Computed: []string{
			"ipv4Addresses", "ipv6Addresses", "macAddresses", "networkInterfaceNames", "vmId",
			"disks[*].pathInDatastore", "disks[*].fileFormat", "efiDisk.fileFormat",
			"networkDevices[*].macAddress", "initialization.upgrade",
		},
		AutoName:          "name",
		KeepsFailedUpdate: true,
		Replace: []string{
			"clone", "disks[*].fileId", "efiDisk.fileFormat", "efiDisk.type", "efiDisk.preEnrolledKeys",
			"initialization.metaDataFileId", "initialization.networkDataFileId", "initialization.userDataFileId",
			"initialization.vendorDataFileId", "initialization.type", "initialization.userAccount",
			"template", "tpmState.version",
		},
		ReplaceIf: replacesVM,
		Ignore:    ignoresVM,
		Unsettled: unsettledVM,
		Validate:  validateVM,
		Recompute: func(found []bridge.Change) []string {
			for _, c := range found {
				if c.Path.Covers("started") || c.Path.Covers("networkDevices") {
					return []string{"ipv4Addresses", "ipv6Addresses", "networkInterfaceNames"}
				}
			}
			return nil
		},
		Create: createVM,
		Read:   readVM,
		Update: updateVM,
		Delete: deleteVM,
	}
}

// replacesVM: another node without migration, another id, an EFI or TPM disk that comes or goes.
func replacesVM(c bridge.Change, op *bridge.Op) bool {
	switch path := c.Path.Pattern(); path {
	case "nodeName":
		return !op.In.Bool("migrate")
	case "vmId":
		return c.Unknown || strconv.Itoa(op.In.Int("vmId")) != op.ID
	case "efiDisk", "tpmState":
		return true
	case "clone.vmId":
		return true
	}

	return false
}

// ignoresVM: the order of disks and of a description's line ends mean nothing, nor does an empty
// cloud-init interface.
func ignoresVM(c bridge.Change, op *bridge.Op) bool {
	switch {
	case c.Path.Covers("tags"): // the last one is never taken away
		return len(op.In.Strs("tags")) == 0 && !c.Unknown
	case c.Path.Covers("disks") && !c.Unknown:
		return sameDisks(op.Was.List("disks"), op.In.List("disks"))
	case c.Path.Pattern() == "initialization.interface":
		return op.In.Str("initialization.interface") == ""
	}

	return false
}

// unsettledVM: the provider wants its default of a speed without limits, and of a CD drive that is off,
// on every machine, and finds neither when it reads.
func unsettledVM(op *bridge.Op) []bridge.Change {
	var found []bridge.Change
	want := func(path bridge.Path, values bridge.Tree) {
		found = append(found, bridge.Change{Path: path, Old: "", New: ""})
		for _, k := range slices.Sorted(maps.Keys(values)) {
			found = append(found, bridge.Change{Path: path.With(k), New: values[k]})
		}
	}

	if op.In.Has("cdrom") && !op.In.Bool("cdrom.enabled") && op.In.Str("cdrom.fileId") == "" {
		want(bridge.Path{"cdrom"}, bridge.Tree{"enabled": false, "interface": op.In.Str("cdrom.interface")})
	}
	for i, d := range op.In.List("disks") {
		if !limited(d) {
			none := bridge.Tree{}
			for _, k := range limits() {
				none[k] = 0
			}
			want(bridge.Path{"disks", i, "speed"}, none)
		}
	}

	return found
}

func limited(disk bridge.Tree) bool {
	return slices.ContainsFunc(limits(), func(k string) bool { return disk.Int("speed."+k) > 0 })
}

func limits() []string {
	return []string{
		"iopsRead", "iopsReadBurstable", "iopsWrite", "iopsWriteBurstable", "read", "readBurstable", "write", "writeBurstable",
	}
}

// sameDisks compares lists of disks by interface.
func sameDisks(was, now []bridge.Tree) bool {
	if len(was) != len(now) {
		return false
	}

	for _, w := range was {
		i := slices.IndexFunc(now, func(n bridge.Tree) bool { return n.Str("interface") == w.Str("interface") })
		if i < 0 || !sameDisk(w, now[i]) {
			return false
		}
	}

	return true
}

func sameDisk(was, now bridge.Tree) bool {
	for _, k := range diskFields() {
		if now.Has(k) && !equalScalar(was.At(k), now.At(k)) {
			return false
		}
		if !now.Has(k) && was.Has(k) && k != "pathInDatastore" && k != "fileFormat" && k != "speed" {
			return false
		}
	}

	return true
}

func diskFields() []string {
	return []string{
		"aio", "backup", "cache", "datastoreId", "discard", "fileFormat", "fileId", "iothread",
		"pathInDatastore", "replicate", "serial", "size", "ssd",
		"speed.iopsRead", "speed.iopsReadBurstable", "speed.iopsWrite", "speed.iopsWriteBurstable",
		"speed.read", "speed.readBurstable", "speed.write", "speed.writeBurstable",
	}
}

func equalScalar(a, b any) bool {
	if x, ok := a.(int); ok {
		a = float64(x)
	}
	if x, ok := b.(int); ok {
		b = float64(x)
	}

	return a == b
}

// vmDefaults returns the provider's; those of blocks make a block appear that the program left out.
func vmDefaults() bridge.Defaults {
	block := map[string]any{}

	return bridge.Defaults{
		"acpi": true, "bios": "seabios", "keyboardLayout": "en-us", "migrate": false, "onBoot": true,
		"protection": false, "reboot": false, "scsiHardware": "virtio-scsi-pci", "started": true,
		"stopOnDestroy": false, "tabletDevice": true, "template": false,
		"timeoutClone": 1800, "timeoutCreate": 1800, "timeoutMigrate": 1800, "timeoutReboot": 1800,
		"timeoutShutdownVm": 1800, "timeoutStartVm": 1800, "timeoutStopVm": 300,

		"agent": block, "agent.enabled": false, "agent.timeout": "15m", "agent.trim": false, "agent.type": "virtio",
		"audioDevice.device": "intel-hda", "audioDevice.driver": "spice", "audioDevice.enabled": true,
		"cdrom": block, "cdrom.enabled": false, "cdrom.interface": "ide3",
		"clone.full": true, "clone.retries": 1,
		"cpu": block, "cpu.cores": 1, "cpu.hotplugged": 0, "cpu.limit": 0, "cpu.numa": false, "cpu.sockets": 1,
		"cpu.type": "qemu64", "cpu.units": 1024,
		"disks":        []any{map[string]any{"interface": "scsi0"}},
		"disks[*].aio": "io_uring", "disks[*].backup": true, "disks[*].cache": "none",
		"disks[*].datastoreId": "local-lvm", "disks[*].discard": "ignore", "disks[*].iothread": false,
		"disks[*].replicate": true, "disks[*].size": 8, "disks[*].ssd": false,
		"efiDisk.datastoreId": "local-lvm", "efiDisk.type": "2m", "efiDisk.preEnrolledKeys": false,
		"initialization.datastoreId": "local-lvm",
		"memory":                     block, "memory.dedicated": 512, "memory.floating": 0, "memory.shared": 0,
		"memory.keepHugepages":     false,
		"networkDevices[*].bridge": "vmbr0", "networkDevices[*].enabled": true, "networkDevices[*].firewall": false,
		"networkDevices[*].model": "virtio", "networkDevices[*].mtu": 0, "networkDevices[*].queues": 0,
		"networkDevices[*].rateLimit": 0, "networkDevices[*].vlanId": 0,
		"numas[*].policy": "preferred",
		"operatingSystem": block, "operatingSystem.type": "other",
		"serialDevices": []any{map[string]any{"device": "socket"}}, "serialDevices[*].device": "socket",
		"startup.order": -1, "startup.upDelay": -1, "startup.downDelay": -1,
		"tpmState.datastoreId": "local-lvm", "tpmState.version": "v2.0",
		"vga": block, "vga.memory": 16, "vga.type": "std",
		"watchdog": block, "watchdog.action": "none", "watchdog.enabled": false, "watchdog.model": "i6300esb",
	}
}
