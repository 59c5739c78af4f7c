// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package vms

import (
	"regexp"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// The most that a disk or a machine has; more is a unit mistaken for another.
const (
	mostDisk   = spec.GiB(64 * 1024)
	mostMemory = spec.MiB(4178944) // what Proxmox VE takes
)

// diskName is a disk of the guest by the name that the bus gives it.
var diskName = regexp.MustCompile(`^/dev/(sd|vd)([a-z])$`)

// installDisk checks that the disk Talos is installed on is there, by the name that its bus gives it.
func (r *rules) installDisk(at string, n spec.NamedNode) {
	path := at + ".installDisk"
	device := *n.InstallDisk
	defer r.ownLinks(path, n)
	if link, ok := strings.CutPrefix(device, "/dev/disk/"); ok {
		r.diskLink(path, link, n)

		return
	}
	m := diskName.FindStringSubmatch(device)
	if m == nil {
		r.Addf(path, "%q is no disk that a VM has: write %s, or a name below /dev/disk/", device, spec.DevicePath(*n.OSDisk))

		return
	}
	bus := map[bool]string{true: "virtio", false: "scsi or sata"}[m[1] == "vd"]
	count := 0
	for _, d := range append(n.DataDisks(), spec.DataDisk{Disk: *n.OSDisk}) {
		if (*d.Type == "virtio") == (m[1] == "vd") {
			count++
		}
	}
	if int(m[2][0]-'a') >= count {
		r.Addf(path, "%s is not there, since the VM has %d disks on %s: write %s", device, count, bus, spec.DevicePath(*n.OSDisk))
	} else if !strings.HasPrefix(spec.DevicePath(*n.OSDisk), "/dev/"+m[1]) {
		r.Addf(path, "%s is not the OS disk, which is on %s: write %s", device, *n.OSDisk.Type, spec.DevicePath(*n.OSDisk))
	}
}

// talosPaths are directories that Talos, containerd, the kubelet or etcd have for themselves; a mount would hide them.
var talosPaths = []string{
	"/var/lib/etcd", "/var/lib/kubelet", "/var/lib/containerd", "/var/lib/cni", "/var/log", "/var/run", "/var/etc", "/var/system",
}

// mounts checks where disks are mounted: not over what Talos needs, and not inside one another.
func (r *rules) mounts(at string, n spec.NamedNode) {
	names := scope.SortedKeys(n.Disks)
	for _, name := range names {
		m := spec.Value(n.Disks[name].Mountpoint)
		path := check.Key(at+".disks", name) + ".mountpoint"
		for _, own := range talosPaths {
			if m == own || strings.HasPrefix(m, own+"/") || strings.HasPrefix(own, m+"/") && m != "" {
				r.Addf(path, "%s would hide %s, which Talos needs: mount it below /var/mnt, or at a path of its own", m, own)

				break
			}
		}
		if m == "/var/mnt" {
			r.Addf(path, "/var/mnt holds the mounts of all volumes: write a directory below it, such as /var/mnt/%s", name)
		}
		for _, other := range names {
			if o := spec.Value(n.Disks[other].Mountpoint); o != "" && strings.HasPrefix(m, o+"/") {
				r.Addf(path, "%s is inside %s, where disk %s is mounted: mount them beside each other", m, o, other)
			}
		}
	}
}

// units records sizes so large that another unit was meant.
func (r *rules) units(at string, n spec.NamedNode) {
	if memory := *n.Memory; memory > mostMemory {
		hint := "lower it"
		if memory%1024 == 0 && memory/1024 <= mostMemory {
			hint = "if KiB was meant, write %d"
			r.Addf(at+".memory", "%d MiB is more than Proxmox VE takes, %d MiB: "+hint, memory, mostMemory, memory/1024)
		} else {
			r.Addf(at+".memory", "%d MiB is more than Proxmox VE takes, %d MiB: %s", memory, mostMemory, hint)
		}
	}
	sizes := map[string]*spec.GiB{at + ".osDisk.size": n.OSDisk.Size}
	for name, d := range n.Disks {
		sizes[check.Key(at+".disks", name)+".size"] = d.Size
	}
	for _, path := range scope.SortedKeys(sizes) {
		if size := spec.Value(sizes[path]); size > mostDisk {
			r.Addf(path, "%d GiB is more than a disk holds, %d GiB: if MiB was meant, write %d", size, mostDisk, size/1024)
		}
	}
}

// trustedModule checks what a TPM needs: its version, and firmware that measures the boot.
func (r *rules) trustedModule(at string, n spec.NamedNode) {
	e := r.Config.Talos.DiskEncryption
	byTPM := e != nil && (e.State != nil && *e.State.Key == "tpm" || e.Ephemeral != nil && *e.Ephemeral.Key == "tpm")
	if n.TPM == nil || !byTPM {
		return
	}
	if *n.TPM.Version != "v2.0" {
		r.Addf(at+".tpm.version", "is %s, and Talos seals disk encryption keys with version v2.0: write that", *n.TPM.Version)
	}
	if *n.BIOS != "ovmf" {
		r.Addf(at+".bios", "is %s, which measures no boot into the TPM that talos.diskEncryption takes its key from: set bios to ovmf", *n.BIOS)
	}
}
