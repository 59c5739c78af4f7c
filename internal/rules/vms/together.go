// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package vms

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/image"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

var (
	// cpuTypes are the families of processors that Proxmox VE emulates, and users' own types.
	cpuTypes = regexp.MustCompile(`^(host|max|x86-64-v[234](-AES)?|custom-[A-Za-z0-9_.-]+|` +
		`(Broadwell|Cascadelake-Server|ClearwaterForest|Cooperlake|Denverton|DiamondRapids|EPYC|GraniteRapids|Haswell|Icelake-(Client|Server)|` +
		`IvyBridge|` +
		`KnightsMill|Nehalem|Opteron_G[1-5]|Penryn|SandyBridge|SapphireRapids|SierraForest|Skylake-(Client|Server)|Snowridge|` +
		`Westmere)(-[A-Za-z0-9-]+)?)$`)
	// cpuFlags are what Proxmox VE lets a VM turn on and off (qemu-server: PVE/QemuServer/CPUConfig.pm).
	cpuFlags = []string{
		"aes", "amd-no-ssb", "amd-ssbd", "hv-evmcs", "hv-tlbflush", "ibpb", "md-clear", "nested-virt", "pcid", "pdpe1gb", "spec-ctrl",
		"ssbd", "virt-ssbd",
	}
	mappingForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)
	volumeForm  = regexp.MustCompile(`^[A-Za-z0-9-]{1,34}$`)
	mirrorForm  = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`)
)

// mostCores is how many cores a VM may have together.
const mostCores = 1024

// processorFits checks the processor against what Proxmox VE knows.
func (r *rules) processorFits(at string, n spec.NamedNode) {
	arm := spec.Value(r.Config.Image(n).Arch) == "arm64"
	if !arm && !cpuTypes.MatchString(*n.CPUType) && !r.Wrong(at+".cpuType") {
		names := []string{"host", "max", "x86-64-v2", "x86-64-v2-AES", "x86-64-v3", "x86-64-v4",
			"Nehalem", "Skylake-Server", "EPYC", "Haswell", "Broadwell"}
		hint := ": write host, x86-64-v2-AES, or custom- and the name of one of your own"
		if best := check.Nearest(*n.CPUType, names); best != "" {
			hint = "; did you mean \"" + best + "\"?"
		}
		r.Addf(at+".cpuType", "%q is no CPU type that Proxmox VE has%s", *n.CPUType, hint)
	}
	seen := map[string]bool{}
	for i, flag := range n.CPUFlags {
		here := check.Index(at+".cpuFlags", i)
		if r.Wrong(here) || flag == "" {
			continue
		}
		switch name := flag[1:]; {
		case !slices.Contains(cpuFlags, name):
			r.Addf(here, "%s; Proxmox VE lets a VM turn on and off no other", scope.NotOneOf(name, cpuFlags))
		case seen[name]:
			r.Addf(here, "%s is said before: keep one of them", name)
		default:
			seen[name] = true
		}
	}
	if cores := *n.CPU * *n.Sockets; cores > mostCores && !r.Wrong(at+".cpu", at+".sockets") {
		r.List.Between(at+".sockets", at+".cpu", "make %d cores with cpu, more than a VM has, %d: lower one of them", cores, mostCores)
	}
}

// guestFits checks settings of the guest against each other.
func (r *rules) guestFits(at string, n spec.NamedNode) {
	r.Twice(at+".tags", n.Tags)
	if v := n.VGA; v != nil {
		switch kind := *v.Type; {
		case strings.HasPrefix(kind, "serial") && kind != "serial0":
			r.Addf(at+".vga.type", "is %s, and the VM has serial0 alone: write that", kind)
		case v.Clipboard != nil && (kind == "none" || strings.HasPrefix(kind, "serial")):
			r.Addf(at+".vga.clipboard", "is for a display, and the type is %s: remove it", kind)
		}
	}
	seen := map[string]bool{}
	for i, u := range n.USB {
		name := spec.Value(u.Mapping) + spec.Value(u.Host)
		here := check.Index(at+".usb", i)
		if u.Mapping != nil && !mappingForm.MatchString(*u.Mapping) {
			r.Addf(here+".mapping", "%q is no name of a resource mapping", *u.Mapping)
		}
		if seen[name] && name != "" {
			field := ".host"
			if u.Mapping != nil {
				field = ".mapping"
			}
			r.Addf(here+field, "%s is listed twice: name each device once", name)
		}
		seen[name] = true
	}
	if len(n.USB) > mostUSB {
		r.Addf(at+".usb", "%d devices are too many: the most is %d", len(n.USB), mostUSB)
	}
	r.available(at, n)
	r.modules(at+".kernelModules", n, n.KernelModules)
}

// mostUSB is how many USB devices a VM can have.
const mostUSB = 14

// available checks a high-availability resource.
func (r *rules) available(at string, n spec.NamedNode) {
	if n.HA == nil {
		return
	}
	if state := *n.HA.State; state == "stopped" || state == "disabled" {
		r.Addf(at+".ha.state", "is %s, with which Proxmox stops the VM that the cluster needs: write started or ignored", state)
	}
	if n.HA.Group != nil && !mappingForm.MatchString(*n.HA.Group) {
		r.Addf(at+".ha.group", "%q is no name of an HA group", *n.HA.Group)
	}
	if slices.ContainsFunc(n.USB, func(u spec.USB) bool { return u.Host != nil }) && !r.Wrong(at+".ha") {
		r.Addf(at+".ha", "cannot move a VM that has a USB device of its host: remove usb, or ha")
	}
}

// moduleExtensions are kernel modules that an extension brings, with that extension.
var moduleExtensions = map[string][]string{
	"zfs": {"zfs"}, "spl": {"zfs"}, "drbd": {"drbd"}, "drbd_transport_tcp": {"drbd"}, "btrfs": {"btrfs"},
	"gasket": {"gasket-driver"}, "apex": {"gasket-driver"},
	"nvidia": gpuExtensions["nvidia"][0], "nvidia_uvm": gpuExtensions["nvidia"][0], "nvidia_drm": gpuExtensions["nvidia"][0],
	"nvidia_modeset": gpuExtensions["nvidia"][0], "amdgpu": {"amdgpu"}, "i915": {"i915"}, "xe": {"xe"},
}

// modules checks that the image has the modules that no kernel of Talos has by itself.
func (r *rules) modules(at string, n spec.NamedNode, modules map[string][]string) {
	img := r.Config.Image(n)
	if img.SchematicFile != nil {
		return
	}
	for _, name := range scope.SortedKeys(modules) {
		needed, known := moduleExtensions[name]
		if known && !slices.ContainsFunc(needed, func(short string) bool { return spec.HasExtension(img, "siderolabs/"+short) }) {
			r.Addf(check.Key(at, name), "is a module of the extension %s, which image %s has not: add the extension", needed[0], *n.Node.Image)
		}
	}
}

// speedFits checks limits of a disk: QEMU takes a burst only above the limit that it exceeds.
func (r *rules) speedFits(at string, s *spec.DiskSpeed) {
	if s == nil {
		return
	}
	for name, pair := range map[string][2]*int{"read": {s.Read, s.ReadBurst}, "write": {s.Write, s.WriteBurst}} {
		limit, burst := pair[0], pair[1]
		switch {
		case burst == nil:
		case limit == nil:
			r.Addf(at+"."+name+"Burst", "needs %s, above which it goes: add that, or remove it", name)
		case *burst < *limit:
			r.Addf(at+"."+name+"Burst", "%d is less than %s, %d: raise it, or remove it", *burst, name, *limit)
		}
	}
}

// volumeName checks that Talos can name the volume of a disk after its mountpoint.
func (r *rules) volumeName(at, mountpoint string) {
	if path.Dir(mountpoint) == "/var/mnt" && !volumeForm.MatchString(path.Base(mountpoint)) && !r.Wrong(at) {
		r.Addf(at, "%q is no name of a volume: below /var/mnt use up to 34 letters, digits and dashes", path.Base(mountpoint))
	}
}

// ownLinks records an install disk that is another disk of the VM.
func (r *rules) ownLinks(at string, n spec.NamedNode) {
	device := *n.InstallDisk
	if r.Wrong(scope.NodePath(n) + ".disks") {
		return
	}
	for _, d := range n.DataDisks() {
		if slices.Contains(d.GuestLinks(), device) {
			r.Addf(at, "%s is the data disk %s: remove it, and Talos is installed on the OS disk", device, d.Name)
		}
	}
	m := diskName.FindStringSubmatch(device)
	if m == nil || r.Wrong(at) {
		return
	}
	disks := append(n.DataDisks(), spec.DataDisk{Disk: *n.OSDisk})
	if m[1] == "sd" && n.VMID != nil && r.severalOfKernel(at, device, disks) {
		return
	}
	slices.SortFunc(disks, func(a, b spec.DataDisk) int { return cmp.Compare(*a.UnitNumber, *b.UnitNumber) })
	place := 0
	for _, d := range disks {
		if *d.Type != *n.OSDisk.Type {
			continue
		}
		if d.Name == "" {
			break
		}
		place++
	}
	if int(m[2][0]-'a') != place {
		r.Addf(at, "%s is a data disk: remove it, and Talos is installed on the OS disk", device)
	}
}

// severalOfKernel records an install disk by a name such as /dev/sda where the VM has several disks of which any may get it:
// the kernel looks at SCSI and SATA disks at the same time and names them as it finds them.
func (r *rules) severalOfKernel(at, device string, disks []spec.DataDisk) bool {
	count := 0
	for _, d := range disks {
		if *d.Type != "virtio" {
			count++
		}
	}
	if count < 2 {
		return false
	}
	r.Addf(at, "%s is whichever of the VM's %d disks on scsi or sata the kernel finds first, which may be a data disk: "+
		"remove it, and Talos is installed on the OS disk by its link below /dev/disk/", device, count)

	return true
}

// firmwares checks what every node that boots an image must have for it, and tells it once: at the image.
func (r *rules) firmwares() {
	for _, name := range scope.SortedKeys(r.Config.Images) {
		img := r.Config.Images[name]
		needs := ""
		switch {
		case spec.Value(img.SecureBoot):
			needs = "secureBoot"
		case spec.Value(img.Arch) == "arm64":
			needs = "arch"
		default:
			continue
		}
		var without []spec.NamedNode
		for _, n := range r.Config.Nodes {
			if *n.Node.Image == name && *n.BIOS != "ovmf" {
				without = append(without, n)
			}
		}
		switch {
		case len(without) > 1:
			r.Addf(check.Join(check.Key("images", name), needs), "needs the firmware ovmf, and %s seabios: set bios to ovmf", have(without))
		case len(without) == 1:
			r.List.Between(check.Join(check.Key("images", name), needs), scope.NodePath(without[0])+".bios",
				"needs the firmware ovmf, and %s seabios: set bios to ovmf", have(without))
		}
	}
}

// have returns "node a has" or "node a and 3 more have".
func have(nodes []spec.NamedNode) string {
	names := make([]string, 0, len(nodes))
	for _, n := range nodes {
		names = append(names, n.Name)
	}

	return "node " + scope.Have(names)
}

// arguments refuses kernel arguments that settings stand for.
func (r *rules) arguments(at string, img spec.Image) {
	const configured = "the program brings the configuration itself"
	said := map[string]string{
		"talos.platform": "image.platform says it", "talos.hostname": "hostname says it",
		"talos.config": configured, "talos.config.inline": configured, "talos.config.early": configured,
	}
	for i, argument := range img.KernelArgs {
		name, _, _ := strings.Cut(argument, "=")
		if why, own := said[name]; own {
			r.Addf(check.Index(at+".kernelArgs", i), "%s is not for users: %s; remove it", name, why)
		}
	}
}

// schematicAgent checks that a user's own schematic has the guest agent that a node turns on.
func (r *rules) schematicAgent(at string, n spec.NamedNode) {
	img := r.Config.Image(n)
	if !*n.Agent || img.SchematicFile == nil || r.Files == nil || r.Wrong("talos.version") {
		return
	}
	schematic, err := image.Resolve(img, *r.Config.Talos.Version, r.Files)
	if err == nil && !slices.Contains(schematic.Extensions, spec.AgentExtension) {
		r.Addf(at+".agent", "is true, and %s has no %s: add the extension there, or set agent to false", *img.SchematicFile, spec.AgentExtension)
	}
}
