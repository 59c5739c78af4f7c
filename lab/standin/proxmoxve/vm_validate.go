// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmoxve

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// Limits of the provider.
const (
	maxDisks, maxNICs, maxPCI, maxSerial, maxUSB, maxNUMA, maxIPConfigs = 14, 32, 16, 4, 4, 8, 8

	minVMID, maxVMID = 100, 2147483647
)

// rules collects problems at dotted paths, in the provider's words.
type rules struct {
	*bridge.Problems
	in bridge.Tree
}

func pathOf(dotted string) bridge.Path {
	var p bridge.Path
	for step := range strings.SplitSeq(dotted, ".") {
		if i, err := strconv.Atoi(step); err == nil {
			p = p.With(i)
			continue
		}
		p = p.With(step)
	}

	return p
}

func (r rules) fail(path, format string, args ...any) { r.Add(pathOf(path), format, args...) }

func (r rules) oneOf(path string, allowed ...string) {
	v := r.in.Str(path)
	if v == "" || slices.Contains(allowed, v) {
		return
	}

	quoted := make([]string, len(allowed))
	for i, a := range allowed {
		quoted[i] = strconv.Quote(a)
	}
	r.fail(path, "expected %s to be one of [%s], got %s", path, strings.Join(quoted, " "), v)
}

func (r rules) between(path string, least, most int) {
	if v := r.in.Int(path); r.in.Has(path) && (v < least || v > most) {
		r.fail(path, "expected %s to be in the range (%d - %d), got %d", path, least, most, v)
	}
}

func (r rules) matches(path, pattern, message string) {
	if v := r.in.Str(path); v != "" && !regexp.MustCompile(pattern).MatchString(v) {
		r.fail(path, "invalid value for %s (%s)", path, message)
	}
}

func (r rules) atMost(path string, most int) {
	if l, _ := r.in.At(path).([]any); len(l) > most {
		r.fail(path, "Too many list items. Attribute %s supports %d item maximum, but config has %d declared",
			path, most, len(l))
	}
}

// fileID is <datastore>:<content>/<file name>.
const fileID = `^(?i)[a-z\d\-_.]+:([a-z\d\-_]+/)?.+$`

// validateVM checks what the provider checks before any call.
func validateVM(p *bridge.Problems, in bridge.Tree) {
	r := rules{Problems: p, in: in}

	if in.Has("nodeName") && in.Str("nodeName") == "" {
		r.fail("nodeName", "expected %q to not be an empty string, got ", "nodeName")
	}
	if in.Int("vmId") != -1 {
		r.between("vmId", minVMID, maxVMID)
	}

	r.oneOf("bios", "ovmf", "seabios")
	r.matches("machine", machineForm, "must be a valid machine type")
	r.oneOf("scsiHardware", "lsi", "lsi53c810", "virtio-scsi-pci", "virtio-scsi-single", "megasas", "pvscsi")
	r.oneOf("operatingSystem.type", "l24", "l26", "other", "solaris", "w2k", "w2k3", "w2k8", "win7", "win8",
		"win10", "win11", "wvista", "wxp")
	r.oneOf("keyboardLayout", "da", "de", "de-ch", "en-gb", "en-us", "es", "fi", "fr", "fr-be", "fr-ca", "fr-ch",
		"hu", "is", "it", "ja", "lt", "mk", "nl", "no", "pl", "pt", "pt-br", "sl", "sv", "tr")

	r.agent()
	r.processor()
	r.memory()
	r.drives()
	r.network()
	r.initialization()
	r.devices()
}

const machineForm = `^$|^(pc|pc(-i440fx)?-\d+(\.\d+)+(\+pve\d+)?(\.pxe)?|q35|` +
	`pc-q35-\d+(\.\d+)+(\+pve\d+)?(\.pxe)?|virt(?:-\d+(\.\d+)+)?(\+pve\d+)?)$`

func (r rules) agent() {
	r.oneOf("agent.type", "isa", "virtio")
	if v := r.in.Str("agent.timeout"); v != "" {
		if _, err := time.ParseDuration(v); err != nil {
			r.fail("agent.timeout", "expected value of agent.timeout to be a duration - got: %s", v)
		}
	}
}

func (r rules) processor() {
	r.oneOf("cpu.architecture", "aarch64", "x86_64")
	r.between("cpu.cores", 1, 2304)
	r.between("cpu.hotplugged", 0, 2304)
	r.between("cpu.limit", 0, 128)
	r.between("cpu.sockets", 1, 16)
	r.between("cpu.units", 2, 262144)
	r.matches("cpu.affinity", `^\d+[\d-,]*$`, "must contain numbers or number ranges separated by ','")

	if v := r.in.Str("cpu.type"); v != "" && !slices.Contains(cpuTypes(), v) && !strings.HasPrefix(v, "custom-") {
		r.oneOf("cpu.type", cpuTypes()...)
	}
}

func (r rules) memory() {
	const most = 268435456

	r.between("memory.dedicated", 64, most)
	r.between("memory.floating", 0, most)
	r.between("memory.shared", 0, most)
	r.oneOf("memory.hugepages", "1024", "2", "any")
	if r.in.Has("memory.hugepages") && !r.Said("cpu.numa") {
		r.fail("memory.hugepages", "Missing required argument. \"memory.0.hugepages\": all of "+
			"`cpu.0.numa,memory.0.hugepages` must be specified")
	}
}

func (r rules) drives() {
	r.atMost("disks", maxDisks)

	for i := range r.in.List("disks") {
		at := fmt.Sprintf("disks.%d.", i)
		r.oneOf(at+"aio", "io_uring", "native", "threads")
		r.oneOf(at+"cache", "none", "writethrough", "writeback", "unsafe", "directsync")
		r.oneOf(at+"discard", "ignore", "on")
		r.oneOf(at+"fileFormat", "qcow2", "raw", "vmdk")
		r.matches(at+"fileId", fileID, "must be a valid file identifier (datastore-name:iso/some-file.img)")
		if v := r.in.Int(at + "size"); r.in.Has(at+"size") && v < 1 {
			r.fail(at+"size", "expected %ssize to be at least (1), got %d", at, v)
		}
		if v := r.in.Str(at + "serial"); len(v) > 20 {
			r.fail(at+"serial", "expected length of %sserial to be in the range (0 - 20), got %s", at, v)
		}
	}

	r.oneOf("cdrom.interface", "ide0", "ide1", "ide2", "ide3")
	if v := r.in.Str("cdrom.fileId"); v != "none" && v != "cdrom" {
		r.matches("cdrom.fileId", fileID, "must be a valid file identifier (datastore-name:iso/some-file.img)")
	}
	r.oneOf("efiDisk.type", "2m", "4m")
	r.oneOf("efiDisk.fileFormat", "qcow2", "raw", "vmdk")
	r.oneOf("tpmState.version", "v1.2", "v2.0")
}

func (r rules) network() {
	r.atMost("networkDevices", maxNICs)

	for i := range r.in.List("networkDevices") {
		at := fmt.Sprintf("networkDevices.%d.", i)
		r.oneOf(at+"model", "e1000", "e1000e", "rtl8139", "virtio", "vmxnet3")
		r.between(at+"queues", 0, 64)
		if v := r.in.Str(at + "macAddress"); v != "" && !regexp.MustCompile(macForm).MatchString(v) {
			r.fail(at+"macAddress", "expected %smacAddress to be a valid MAC address (A0:B1:C2:D3:E4:F5), got %s", at, v)
		}
	}
}

const macForm = `^[A-Fa-f0-9]{2}(:[A-Fa-f0-9]{2}){5}$`

func (r rules) initialization() {
	r.oneOf("initialization.type", "configdrive2", "nocloud")
	r.matches("initialization.interface", `^ide[0-3]|sata[0-5]|scsi(?:30|[12][0-9]|[0-9])$`,
		"one of ide0..3|sata0..5|scsi0..30")
	r.atMost("initialization.ipConfigs", maxIPConfigs)

	for _, name := range []string{"userDataFileId", "vendorDataFileId", "networkDataFileId", "metaDataFileId"} {
		r.matches("initialization."+name, fileID, "must be a valid file identifier (datastore-name:iso/some-file.img)")
	}
	for i, s := range r.in.Strs("initialization.dns.servers") {
		if _, err := netip.ParseAddr(s); err != nil {
			r.fail(fmt.Sprintf("initialization.dns.servers.%d", i),
				"expected initialization.dns.servers.%d to contain a valid IP, got: %s", i, s)
		}
	}
}

func (r rules) devices() {
	r.atMost("hostpcis", maxPCI)
	r.atMost("serialDevices", maxSerial)
	r.atMost("usbs", maxUSB)
	r.atMost("numas", maxNUMA)

	for i, s := range r.in.List("serialDevices") {
		if v := s.Str("device"); v != "" && v != "socket" && !strings.HasPrefix(v, "/dev/") {
			r.fail(fmt.Sprintf("serialDevices.%d.device", i),
				"expected serialDevices.%d.device to be '/dev/*' or 'socket'", i)
		}
	}
	for i := range r.in.List("numas") {
		at := fmt.Sprintf("numas.%d.", i)
		r.matches(at+"device", `^numa\d+$`, "numa node device ID must be in the format 'numaX' where X is a number")
		r.oneOf(at+"policy", "bind", "interleave", "preferred")
	}

	r.between("vga.memory", 4, 512)
	r.oneOf("vga.type", "cirrus", "none", "qxl", "qxl2", "qxl3", "qxl4", "serial0", "serial1", "serial2", "serial3",
		"std", "virtio", "virtio-gl", "vmware")
	r.oneOf("watchdog.action", "debug", "none", "pause", "poweroff", "reset", "shutdown")
	r.oneOf("watchdog.model", "i6300esb", "ib700")
	r.oneOf("audioDevice.device", "AC97", "ich9-intel-hda", "intel-hda")
	r.oneOf("audioDevice.driver", "spice")
}

// cpuTypes returns the CPU models that QEMU on Proxmox VE 8 knows.
func cpuTypes() []string {
	return strings.Fields(`486 Broadwell Broadwell-IBRS Broadwell-noTSX Broadwell-noTSX-IBRS Cascadelake-Server
		Cascadelake-Server-noTSX Cascadelake-Server-v2 Cascadelake-Server-v4 Cascadelake-Server-v5 Conroe Cooperlake
		Cooperlake-v2 EPYC EPYC-IBPB EPYC-Milan EPYC-Rome EPYC-Rome-v2 EPYC-v3 EPYC-v4 Haswell Haswell-IBRS
		Haswell-noTSX Haswell-noTSX-IBRS Icelake-Client Icelake-Client-noTSX Icelake-Server Icelake-Server-noTSX
		Icelake-Server-v3 Icelake-Server-v4 Icelake-Server-v5 Icelake-Server-v6 IvyBridge IvyBridge-IBRS KnightsMill
		Nehalem Nehalem-IBRS Opteron_G1 Opteron_G2 Opteron_G3 Opteron_G4 Opteron_G5 Penryn SandyBridge
		SandyBridge-IBRS SapphireRapids Skylake-Client Skylake-Client-IBRS Skylake-Client-noTSX-IBRS Skylake-Client-v4
		Skylake-Server Skylake-Server-IBRS Skylake-Server-noTSX-IBRS Skylake-Server-v4 Skylake-Server-v5 Westmere
		Westmere-IBRS athlon core2duo coreduo host kvm32 kvm64 max pentium pentium2 pentium3 phenom qemu32 qemu64
		x86-64-v2 x86-64-v2-AES x86-64-v3 x86-64-v4`)
}
