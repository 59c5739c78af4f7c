// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components_test

import (
	"time"

	"github.com/talos-proxmox/talos-proxmox/components"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// everything returns a node that says every option of a VM.
func everything() components.ProxmoxNodeArgs {
	args := prodWorker()
	args.Cluster.Tags = []string{"homelab"}
	args.Cluster.SearchDomains = []string{"example.com"}
	args.Image.SecureBoot = spec.Ptr(true)
	args.Proxmox.Username, args.Proxmox.Password = spec.Ptr("root@pam"), spec.Ptr(spec.NewSecret("hunter2"))
	n := &args.Node
	n.VM = everyVMOption()
	n.Disks = map[string]spec.Disk{
		"longhorn": {
			Size: spec.Ptr(spec.GiB(500)), UnitNumber: spec.Ptr(2), Datastore: spec.Ptr("ceph"), Iothread: spec.Ptr(false),
			Cache: spec.Ptr("directsync"), AIO: spec.Ptr("native"), Discard: spec.Ptr(false), SSD: spec.Ptr(false),
			Backup: spec.Ptr(false), Replicate: spec.Ptr(false), Mountpoint: spec.Ptr("/var/lib/longhorn"),
		},
		"kept": {Size: spec.Ptr(spec.GiB(50)), Serial: spec.Ptr("kept-1"), KeepOnRebuild: spec.Ptr(true)},
		"old":  {Size: spec.Ptr(spec.GiB(5)), Type: spec.Ptr("sata"), UnitNumber: spec.Ptr(0), Format: spec.Ptr("qcow2")},
	}
	n.Networks = map[string]spec.Network{
		"lan": {
			Index: spec.Ptr(0), Bridge: spec.Ptr("vmbr0"), VLAN: spec.Ptr(62), MAC: spec.Ptr("bc:24:11:00:00:01"),
			Model: spec.Ptr("virtio"), MTU: spec.Ptr(9000), Queues: spec.Ptr(4), RateLimit: spec.Ptr(100), Firewall: spec.Ptr(true),
			Address: spec.Ptr("192.168.62.24/24"), Gateway: spec.Ptr("192.168.62.1"),
			Address6: spec.Ptr("fd00:62::24/64"), Gateway6: spec.Ptr("fd00:62::1"),
		},
		"storage": {Index: spec.Ptr(1), MAC: spec.Ptr("bc:24:11:00:00:02"), DHCP: spec.Ptr(true), MTU: spec.Ptr(1)},
	}

	return args
}

func everyVMOption() spec.VM {
	return spec.VM{
		CPU: spec.Ptr(8), Sockets: spec.Ptr(2), CPUType: spec.Ptr("host"), CPUFlags: []string{"+aes"}, CPUUnits: spec.Ptr(200),
		CPULimit: spec.Ptr(4), CPUAffinity: spec.Ptr("0-7"), NUMA: spec.Ptr(true),
		NUMANodes: []spec.NUMANode{{CPUs: "0-15", Memory: 8192, HostNodes: spec.Ptr("0"), Policy: spec.Ptr("bind")}},
		Memory:    spec.Ptr(spec.MiB(8192)), Balloon: spec.Ptr(spec.MiB(4096)), Hugepages: spec.Ptr("1024"),
		KeepHugepages: spec.Ptr(true), SharedMemory: spec.Ptr(spec.MiB(64)),
		Machine: spec.Ptr("q35"), BIOS: spec.Ptr("ovmf"), EFIDisk: &spec.EFIDisk{Datastore: spec.Ptr("ceph")},
		TPM: &spec.TPM{Datastore: spec.Ptr("ceph")}, SCSIHardware: spec.Ptr("virtio-scsi-pci"), OSType: spec.Ptr("other"),
		Agent: spec.Ptr(true), AgentTimeout: spec.Ptr(spec.Duration(90 * time.Second)), OnBoot: spec.Ptr(false),
		Startup: &spec.Startup{Order: spec.Ptr(3), UpDelay: spec.Ptr(30), DownDelay: spec.Ptr(60)},
		Tags:    []string{"zeta", "alpha"}, Description: spec.Ptr("a worker"), Pool: spec.Ptr("k8s"),
		Protection: spec.Ptr(true), Watchdog: &spec.Watchdog{},
		VGA:           &spec.VGA{Type: spec.Ptr("virtio"), Memory: spec.Ptr(32), Clipboard: spec.Ptr("vnc")},
		SerialConsole: spec.Ptr(false), Tablet: spec.Ptr(true), ACPI: spec.Ptr(true), KVMArguments: spec.Ptr("-no-hpet"),
		HookScript: spec.Ptr("local:snippets/hook.sh"),
		GPU: &spec.GPU{
			Devices: []string{"0000:01:00.0", "0000:01:00.1"}, XVGA: spec.Ptr(true), MDev: spec.Ptr("nvidia-63"),
			ROMFile: spec.Ptr("vbios.bin"),
			Identities: map[string]spec.PCIIdentity{
				"0000:01:00.0": {ID: "10de:2684", SubsystemID: spec.Ptr("10de:16a1"), IOMMUGroup: spec.Ptr(14)},
				"0000:01:00.1": {ID: "10de:22ba"},
			},
		},
		USB:     []spec.USB{{Mapping: spec.Ptr("zigbee"), USB3: spec.Ptr(true)}, {Host: spec.Ptr("1234:5678")}},
		Migrate: spec.Ptr(false), DataVMID: spec.Ptr(16201), CloudInitDatastore: spec.Ptr("ceph"),
		Timeouts: &spec.VMTimeouts{Create: spec.Ptr(600), Stop: spec.Ptr(60)},
	}
}
