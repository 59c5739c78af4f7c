// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components_test

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/components"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// editable returns a node on which the setting can be edited alone.
func editable(name string) components.ProxmoxNodeArgs {
	args := everything()
	args.Proxmox.SSH = &spec.SSH{Username: "root", Agent: spec.Ptr(true)}
	args.Image = spec.Image{Extensions: []string{"siderolabs/qemu-guest-agent"}, DatastoreHost: spec.Ptr("alpha")}
	n := &args.Node
	n.Name, n.Migrate, n.Protection = "work-01", nil, nil
	n.GPU.Devices, n.GPU.Identities, n.GPU.Mapping = nil, nil, spec.Ptr("gpu")
	n.USB = n.USB[:1]
	n.SCSIHardware = spec.Ptr("virtio-scsi-single")
	n.InstallDisk = spec.Ptr("/dev/disk/by-path/pci-0000:00:05.0-scsi-0:0:0:0") // its own link would go with the serial number
	n.Disks["kept"] = spec.Disk{Size: spec.Ptr(spec.GiB(50)), UnitNumber: spec.Ptr(1), KeepOnRebuild: spec.Ptr(true)}
	n.Disks["second"] = spec.Disk{Size: spec.Ptr(spec.GiB(5)), UnitNumber: spec.Ptr(9)}
	n.Networks["storage"] = spec.Network{
		Index: spec.Ptr(1), Address: spec.Ptr("10.9.0.5"), Subnet: spec.Ptr("10.9.0.0/24"), MAC: spec.Ptr("bc:24:11:00:00:02"),
	}
	switch name {
	case "nodes.*.cpu", "nodes.*.sockets", "nodes.*.size":
		n.NUMANodes = nil // they name every core
	case "nodes.*.osDisk.type":
		n.InstallDisk = spec.Ptr("/dev/disk/by-path/one") // others are named after the bus
	}
	if name == "nodes.*.host" { // what keeps a VM from moving would be refused
		n.GPU, n.USB, n.DataVMID = nil, nil, nil
		delete(n.Disks, "kept")
	}
	if name == "nodes.*.disks.*.filesystem" {
		mounted := n.Disks["second"]
		mounted.Mountpoint = spec.Ptr("/var/mnt/second")
		n.Disks["second"] = mounted
	}

	return args
}

// editSetting edits the setting of that name, and others only where it cannot be edited alone.
func editSetting(t *testing.T, name string, args *components.ProxmoxNodeArgs) {
	t.Helper()
	if edit, ok := together()[name]; ok {
		edit(&args.Node)

		return
	}
	if path, ok := strings.CutPrefix(name, "nodes.*."); ok {
		editValue(t, reflect.ValueOf(&args.Node.Node).Elem(), "", strings.Split(path, "."))

		return
	}
	if name == "images.*.arch" {
		args.Node.Watchdog = nil // which has no driver there
	}
	if name == "images.*.overlay" {
		args.Image.Overlay = &spec.Overlay{Name: "rpi_generic", Image: "siderolabs/sbc-raspberrypi"}

		return
	}
	editValue(t, reflect.ValueOf(&args.Image).Elem(), "", strings.Split(strings.TrimPrefix(name, "images.*."), "."))
}

// editValue goes down the path and gives what it ends at another value.
func editValue(t *testing.T, v reflect.Value, tag reflect.StructTag, path []string) {
	t.Helper()
	switch {
	case v.Kind() == reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
			if text := tag.Get("default"); text != "" && len(path) == 0 {
				setDefault(t, v.Elem(), text)
			}
		}
		editValue(t, v.Elem(), tag, path)
	case len(path) == 0:
		otherValue(t, v, tag)
	case v.Kind() == reflect.Struct:
		name, inList := strings.CutSuffix(path[0], "[]")
		for _, f := range spec.Fields(v.Type()) {
			if f.Name != name {
				continue
			}
			field := v.FieldByIndex(f.Index)
			if inList {
				field.Set(reflect.AppendSlice(reflect.MakeSlice(field.Type(), 0, 1), field))
				if field.Len() == 0 {
					field.Set(reflect.MakeSlice(field.Type(), 1, 1))
				}
				field = field.Index(0)
			}
			editValue(t, field, f.Struct.Tag, path[1:])

			return
		}
		require.FailNow(t, "no such setting", path[0])
	case v.Kind() == reflect.Map:
		key := reflect.ValueOf("second")
		if v.MapIndex(reflect.ValueOf("storage")).IsValid() {
			key = reflect.ValueOf("storage")
		}
		element := reflect.New(v.Type().Elem()).Elem()
		element.Set(v.MapIndex(key))
		editValue(t, element, "", path[1:])
		v.SetMapIndex(key, element)
	}
}

func setDefault(t *testing.T, v reflect.Value, text string) {
	t.Helper()
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(text == "true")
	case reflect.Int:
		number, err := strconv.ParseInt(text, 10, 64)
		require.NoError(t, err)
		v.SetInt(number)
	case reflect.String:
		v.SetString(text)
	}
}

// otherValue gives v another value that its tag allows.
func otherValue(t *testing.T, v reflect.Value, tag reflect.StructTag) {
	t.Helper()
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.String:
		if enum := tag.Get("enum"); enum != "" {
			others := slices.DeleteFunc(strings.Split(enum, ","), func(s string) bool { return s == v.String() })
			require.NotEmpty(t, others)
			v.SetString(others[0])

			return
		}
		v.SetString(v.String() + "x")
	case reflect.Slice:
		require.Equal(t, reflect.String, v.Type().Elem().Kind())
		v.Set(reflect.Append(v, reflect.ValueOf("x").Convert(v.Type().Elem())))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("x"), reflect.Zero(v.Type().Elem()))
	default:
		require.FailNow(t, "no other value is known", v.Type().String())
	}
}

// together returns the edits of settings that cannot be edited alone, or not to any value.
func together() map[string]func(*spec.NamedNode) {
	n := func(name string) string { return "nodes.*." + name }
	edits := map[string]func(*spec.NamedNode){
		n("role"):                  func(n *spec.NamedNode) { n.Role = spec.Ptr(spec.ControlPlane) },
		n("host"):                  func(n *spec.NamedNode) { n.Host = spec.Ptr("alpha") },
		n("size"):                  func(n *spec.NamedNode) { n.Size, n.CPU = spec.Ptr("large"), spec.Ptr(16) },
		n("image"):                 func(*spec.NamedNode) {}, // the caller hands another image's file over
		n("bios"):                  func(n *spec.NamedNode) { n.BIOS, n.EFIDisk = spec.Ptr("seabios"), nil },
		n("efiDisk"):               func(n *spec.NamedNode) { n.EFIDisk.PreEnrolledKeys = spec.Ptr(true) },
		n("tpm"):                   func(n *spec.NamedNode) { n.TPM = nil },
		n("machine"):               func(n *spec.NamedNode) { n.Machine, n.GPU.PCIe = spec.Ptr("i440fx"), spec.Ptr(false) },
		n("bootOrder"):             func(n *spec.NamedNode) { n.BootOrder = []string{"scsi0", "ide0", "net0"} },
		n("cpuFlags"):              func(n *spec.NamedNode) { n.CPUFlags = nil },
		n("cpuType"):               func(n *spec.NamedNode) { n.CPUType = spec.Ptr("EPYC") },
		n("cpuAffinity"):           func(n *spec.NamedNode) { n.CPUAffinity = spec.Ptr("0-3") },
		n("numaNodes"):             func(n *spec.NamedNode) { n.NUMANodes = nil },
		n("numaNodes[].cpus"):      func(n *spec.NamedNode) { n.NUMANodes[0].CPUs = "0-7;8-15" },
		n("numaNodes[].hostNodes"): func(n *spec.NamedNode) { n.NUMANodes[0].HostNodes = spec.Ptr("1") },
		n("numa"): func(n *spec.NamedNode) {
			n.NUMA, n.NUMANodes, n.Hugepages, n.KeepHugepages = spec.Ptr(false), nil, nil, nil
		},
		n("installDisk"):       func(n *spec.NamedNode) { n.InstallDisk = spec.Ptr("/dev/disk/by-path/pci-0000:00:06.0-scsi-0:0:0:0") },
		n("osDisk.datastore"):  func(n *spec.NamedNode) { n.OSDisk.Datastore = spec.Ptr("ceph") },
		n("disks.*.datastore"): diskEdit(func(d *spec.Disk) { d.Datastore = spec.Ptr("ceph") }),
		n("watchdog.model"):    func(n *spec.NamedNode) { n.Watchdog = nil }, // Talos has a driver for one model
		n("watchdog"):          func(n *spec.NamedNode) { n.Watchdog = nil },
		n("sharedMemory"):      func(n *spec.NamedNode) { n.SharedMemory = spec.Ptr(spec.MiB(128)) },
		n("vga"):               func(n *spec.NamedNode) { n.VGA = nil },
		n("vga.clipboard"):     func(n *spec.NamedNode) { n.VGA.Clipboard = nil },
		n("startup"):           func(n *spec.NamedNode) { n.Startup = nil },
		n("gpu"):               func(n *spec.NamedNode) { n.GPU = nil },
		n("gpu.devices"):       func(n *spec.NamedNode) { n.GPU.Mapping, n.GPU.Devices = nil, []string{"0000:01:00.0"} },
		n("gpu.vendor"):        func(n *spec.NamedNode) { n.GPU.Vendor = nil },
		n("usb"):               func(n *spec.NamedNode) { n.USB = nil },
		n("usb[].host"):        func(n *spec.NamedNode) { n.USB[0] = spec.USB{Host: spec.Ptr("1-2")} },
		n("timeouts"):          func(n *spec.NamedNode) { n.Timeouts = nil },
		n("hostname"):          func(n *spec.NamedNode) { n.Hostname = spec.Ptr("other") },
		n("patches"):           func(n *spec.NamedNode) { n.Patches = []spec.Patch{{File: spec.Ptr("a.yaml")}} },
		n("patches[].inline"):  func(n *spec.NamedNode) { n.Patches = []spec.Patch{{Inline: spec.Ptr(spec.Text("a: b"))}} },
		n("labels"):            func(n *spec.NamedNode) { n.Labels = map[string]string{"a": "b"} },
		n("annotations"):       func(n *spec.NamedNode) { n.Annotations = map[string]string{"a": "b"} },
		n("taints"):            func(n *spec.NamedNode) { n.Taints = map[string]string{"a": ":NoSchedule"} },
		n("sysctls"):           func(n *spec.NamedNode) { n.Sysctls = map[string]string{"vm.swappiness": "1"} },
		n("osDisk"):            func(n *spec.NamedNode) { n.OSDisk.Size = spec.Ptr(*n.OSDisk.Size + 1) },
		n("osDisk.unitNumber"): func(n *spec.NamedNode) { n.OSDisk.UnitNumber = spec.Ptr(20) },
		n("disks"): func(n *spec.NamedNode) {
			n.Disks["third"] = spec.Disk{Size: spec.Ptr(spec.GiB(1)), UnitNumber: spec.Ptr(12)}
		},
		n("disks.*.mountpoint"): diskEdit(func(d *spec.Disk) { d.Mountpoint = spec.Ptr("/var/mnt/x") }),
	}
	for _, field := range []string{"memory", "numaNodes[].memory"} {
		edits[n(field)] = func(n *spec.NamedNode) {
			n.Memory, n.NUMANodes[0].Memory = spec.Ptr(spec.MiB(16384)), spec.MiB(16384)
		}
	}
	for _, field := range []string{"", ".group", ".state", ".maxRestart", ".maxRelocate", ".comment"} {
		edits[n("ha"+field)] = func(n *spec.NamedNode) { n.HA = &spec.HA{Group: spec.Ptr("all"), MaxRestart: spec.Ptr(2)} }
	}
	for _, field := range []string{"", ".*.id", ".*.subsystemId", ".*.iommuGroup"} {
		edits[n("gpu.identities"+field)] = func(n *spec.NamedNode) {
			n.GPU.Mapping, n.GPU.Devices = nil, []string{"0000:01:00.0"}
			n.GPU.Identities = map[string]spec.PCIIdentity{"0000:01:00.0": {ID: "10de:2684"}}
		}
	}
	speedEdits(edits)
	networkEdits(edits)

	return edits
}

func diskEdit(edit func(*spec.Disk)) func(*spec.NamedNode) {
	return func(n *spec.NamedNode) {
		disk := n.Disks["second"]
		edit(&disk)
		n.Disks["second"] = disk
	}
}

// speedEdits give all disks the same limits, as the provider would.
func speedEdits(edits map[string]func(*spec.NamedNode)) {
	for field, speed := range map[string]spec.DiskSpeed{
		"": {Read: spec.Ptr(1)}, ".read": {Read: spec.Ptr(1)}, ".readBurst": {Read: spec.Ptr(1), ReadBurst: spec.Ptr(2)},
		".write": {Write: spec.Ptr(1)}, ".writeBurst": {Write: spec.Ptr(1), WriteBurst: spec.Ptr(2)},
		".iopsRead": {IOPSRead: spec.Ptr(1)}, ".iopsWrite": {IOPSWrite: spec.Ptr(1)},
	} {
		edit := func(n *spec.NamedNode) {
			n.OSDisk.Speed = &speed
			for name, disk := range n.Disks {
				disk.Speed = &speed
				n.Disks[name] = disk
			}
		}
		edits["nodes.*.osDisk.speed"+field], edits["nodes.*.disks.*.speed"+field] = edit, edit
	}
}

func networkEdits(edits map[string]func(*spec.NamedNode)) {
	on := func(name string, edit func(*spec.Network)) func(*spec.NamedNode) {
		return func(n *spec.NamedNode) {
			network := n.Networks[name]
			edit(&network)
			n.Networks[name] = network
		}
	}
	n := func(name string) string { return "nodes.*.networks" + name }
	edits[n("")] = func(n *spec.NamedNode) { n.Networks["third"] = spec.Network{Index: spec.Ptr(2), DHCP: spec.Ptr(true)} }
	edits[n(".*.index")] = func(n *spec.NamedNode) {
		n.Networks["third"] = spec.Network{Index: spec.Ptr(1), DHCP: spec.Ptr(true)}
		on("storage", func(s *spec.Network) { s.Index = spec.Ptr(2) })(n)
	}
	edits[n(".*.mac")] = on("storage", func(s *spec.Network) { s.MAC = spec.Ptr("bc:24:11:00:00:03") })
	edits[n(".*.mtu")] = on("storage", func(s *spec.Network) { s.MTU = spec.Ptr(1500) })
	edits[n(".*.subnet")] = on("storage", func(s *spec.Network) { s.Subnet = spec.Ptr("10.9.0.0/16") })
	edits[n(".*.address")] = on("storage", func(s *spec.Network) { s.Address = spec.Ptr("10.9.0.6") })
	edits[n(".*.dhcp")] = on("storage", func(s *spec.Network) { s.Address, s.Subnet, s.DHCP = nil, nil, spec.Ptr(true) })
	edits[n(".*.address6")] = on("storage", func(s *spec.Network) { s.Address6 = spec.Ptr("fd01::5/64") })
	edits[n(".*.subnet6")] = on("storage", func(s *spec.Network) {
		s.Address6, s.Subnet6 = spec.Ptr("fd01::5"), spec.Ptr("fd01::/64")
	})
	edits[n(".*.gateway")] = on("lan", func(s *spec.Network) { s.Gateway = spec.Ptr("192.168.62.2") })
	edits[n(".*.gateway6")] = on("lan", func(s *spec.Network) { s.Gateway6 = spec.Ptr("fd00:62::2") })
	for _, field := range []string{"", "[].network", "[].gateway", "[].metric"} {
		edits[n(".*.routes"+field)] = on("storage", func(s *spec.Network) {
			s.Routes = []spec.Route{{Network: "10.10.0.0/16", Gateway: spec.Ptr("10.9.0.1"), Metric: spec.Ptr(5)}}
		})
	}
}
