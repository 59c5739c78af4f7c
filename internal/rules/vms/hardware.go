// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package vms

import (
	"reflect"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// hardware checks what Proxmox VE refuses, or what its provider silently does otherwise.
func (r *rules) hardware(at string, n spec.NamedNode) {
	r.speeds(at, n)
	r.gap(at, n)
	img := r.Config.Image(n)
	if spec.Value(img.Arch) == "arm64" {
		r.onlyRoot(at + ".image")
		if n.OSDisk.Interface() == armCloudInit {
			r.Addf(at+".osDisk.unitNumber", "%s is the cloud-init drive's: choose another slot", armCloudInit)
		}
	}
	if n.HA == nil {
		return
	}
	if spec.Value(img.Boot) == "iso" && img.DatastoreHost == nil && spec.Value(n.CDROM) {
		r.Addf(at+".ha", "needs an image that every host has, since Proxmox starts no VM whose ISO is missing: "+
			"set datastoreHost of image %s, or cdRom to false once the node is installed", *n.Node.Image)
	}
	if n.GPU != nil && len(n.GPU.Devices) > 0 {
		r.Addf(at+".ha", "cannot move a VM that has a device of its host: remove gpu.devices, or ha")
	}
}

// armCloudInit is the slot of the cloud-init drive on ARM machines, which have no IDE.
const armCloudInit = "scsi30"

// speeds refuses limits that differ between disks: the provider gives those of the first to all.
func (r *rules) speeds(at string, n spec.NamedNode) {
	for _, name := range scope.SortedKeys(n.Disks) {
		if !reflect.DeepEqual(n.Disks[name].Speed, n.OSDisk.Speed) && !r.Wrong(at+".osDisk.speed", check.Key(at+".disks", name)+".speed") {
			r.Addf(check.Key(at+".disks", name)+".speed",
				"must be the same as osDisk.speed: the Proxmox provider gives the first disk's limits to all")
		}
	}
}

// gap checks that the indexes of network devices leave none out: Proxmox numbers what the guest sees without gaps.
func (r *rules) gap(at string, n spec.NamedNode) {
	devices := n.Devices()
	seen := map[int]bool{}
	for _, d := range devices {
		if seen[d.Index] {
			return // reported where it is listed twice
		}
		seen[d.Index] = true
	}
	for i, d := range devices {
		if d.Index > i {
			last := devices[len(devices)-1]
			r.Addf(check.Key(at+".networks", last.Name)+".index",
				"%d leaves a gap, since the node has %d networks: make it %d", last.Index, len(devices), i)

			return
		}
	}
}
