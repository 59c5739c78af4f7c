// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package vms

import (
	"regexp"
	"slices"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Floors below which Talos refuses to run, or cannot.
const (
	ControlPlaneMemory = spec.MiB(2048)
	WorkerMemory       = spec.MiB(1024)
	OSDiskSize         = spec.GiB(10)
)

// tooOld are CPU types without the instructions Talos needs (x86-64-v2).
var tooOld = []string{
	"486", "athlon", "core2duo", "coreduo", "kvm32", "kvm64", "pentium", "pentium2", "pentium3", "phenom",
	"qemu32", "qemu64", "Conroe", "Penryn",
}

var (
	cpuFlagForm = regexp.MustCompile(`^[+-][a-z0-9_.-]+$`)
	cpuTypeForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)
	hookForm    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*:snippets/\S+$`)
	usbForm     = regexp.MustCompile(`^([0-9a-f]{4}:[0-9a-f]{4}|[0-9]+-[0-9]+(\.[0-9]+)*)$`)
)

func (r *rules) processor(at string, n spec.NamedNode) {
	switch {
	case slices.Contains(tooOld, *n.CPUType):
		r.Addf(at+".cpuType", "%s lacks instructions that Talos needs (x86-64-v2): use x86-64-v2-AES or host", *n.CPUType)
	case !cpuTypeForm.MatchString(*n.CPUType):
		r.Addf(at+".cpuType", "%q is no CPU type such as x86-64-v2-AES or host", *n.CPUType)
	}
	r.Each(at+".cpuFlags", n.CPUFlags, cpuFlagForm.MatchString, "is no CPU flag: write +aes or -pcid")
	if n.CPUAffinity != nil {
		r.onlyRoot(at + ".cpuAffinity")
	}
	r.processorFits(at, n)
	r.coreSets(at, n)
	if limit, cores := spec.Value(n.CPULimit), *n.CPU**n.Sockets; limit > cores && !r.Wrong(at+".cpu", at+".sockets") {
		r.Addf(at+".cpuLimit", "%d is more than the VM's %d cores: lower it, or remove it", limit, cores)
	}
	var sum spec.MiB
	for _, numa := range n.NUMANodes {
		sum += numa.Memory
	}
	if len(n.NUMANodes) == 0 {
		return
	}
	if !*n.NUMA {
		r.Addf(at+".numaNodes", "need numa: set it to true")
	}
	if sum != *n.Memory {
		r.Addf(at+".numaNodes", "have %d MiB together, and the VM has %d MiB: make them equal", sum, *n.Memory)
	}
}

func (r *rules) memory(at string, n spec.NamedNode) {
	memory := *n.Memory
	// A worker's floor is the field's least value.
	if n.IsControlPlane() && memory >= WorkerMemory && memory < ControlPlaneMemory {
		r.Addf(at+".memory",
			"%d MiB is too little for a control plane: Talos needs at least %d MiB", memory, ControlPlaneMemory)
	}
	floor := WorkerMemory
	if n.IsControlPlane() {
		floor = ControlPlaneMemory
	}
	switch balloon := *n.Balloon; {
	case balloon > memory:
		r.Addf(at+".balloon", "%d MiB is more than the memory, %d MiB: lower it, or set it to 0", balloon, memory)
	case balloon > 0 && balloon < floor:
		r.Addf(at+".balloon",
			"%d MiB would let the host shrink the guest below what Talos needs, %d MiB: raise it, or set it "+
				"to 0", balloon, floor)
	}
	if n.SharedMemory != nil {
		r.sharedMemory(at+".sharedMemory", *n.SharedMemory)
	}
	if n.Hugepages == nil {
		if spec.Value(n.KeepHugepages) {
			r.Addf(at+".keepHugepages", "needs hugepages: set them, or remove it")
		}

		return
	}
	r.onlyRoot(at + ".hugepages")
	if !*n.NUMA {
		r.Addf(at+".hugepages", "need numa: set it to true")
	}
	if size := map[string]spec.MiB{"2": 2, "1024": 1024}[*n.Hugepages]; size > 0 && memory%size != 0 {
		r.Addf(at+".memory", "%d MiB is no multiple of the huge pages' %d MiB", memory, size)
	}
}

// sharedMemory checks memory that QEMU shows as the region of a PCI device.
func (r *rules) sharedMemory(at string, size spec.MiB) {
	r.onlyRoot(at)
	if size&(size-1) != 0 || size > mostMemory {
		r.Addf(at, "%d MiB is no size of shared memory, which QEMU shows as a PCI device: write a power of two, such as 64", size)
	}
}

func (r *rules) firmware(at string, n spec.NamedNode) {
	ovmf := *n.BIOS == "ovmf"
	if n.EFIDisk != nil {
		if !ovmf {
			r.Addf(at+".efiDisk", "needs bios ovmf, and bios is %s: change one of them", *n.BIOS)
		}
		if *n.EFIDisk.Datastore != *n.OSDisk.Datastore {
			r.Datastore(at+".efiDisk.datastore", n.EFIDisk.Datastore)
		}
	}
	if n.TPM != nil && *n.TPM.Datastore != *n.OSDisk.Datastore {
		r.Datastore(at+".tpm.datastore", n.TPM.Datastore)
	}
	img := r.Config.Image(n)
	if spec.Value(img.SecureBoot) && ovmf && spec.Value(n.EFIDisk.PreEnrolledKeys) {
		r.Addf(at+".efiDisk.preEnrolledKeys", "enrols Microsoft's keys, with which Talos does not boot: set it to false")
	}
}

// guest checks the agent, display, start and the rest of the VM.
func (r *rules) guest(at string, n spec.NamedNode) {
	if img := r.Config.Image(n); *n.Agent && img.SchematicFile == nil && !spec.HasExtension(img, spec.AgentExtension) {
		r.Addf(at+".agent",
			"is true, and image %s has no %s: add the extension, or set agent to false", *n.Node.Image, spec.AgentExtension)
	}
	r.schematicAgent(at, n)
	r.guestFits(at, n)
	r.Positive(at+".agentTimeout", n.AgentTimeout)
	r.Each(at+".tags", n.Tags, scope.TagForm.MatchString, scope.TagRule)
	r.bootOrder(at, n)
	r.rootOptions(at, n)
	r.display(at, n)
	if n.Pool != nil && !scope.DatastoreForm.MatchString(*n.Pool) {
		r.Addf(at+".pool", "%q is no name of a resource pool", *n.Pool)
	}
	if n.HA != nil && n.HA.Group != nil && *r.Config.Proxmox.Version >= 9 && !r.Wrong(at+".ha.group") {
		r.Addf(at+".ha.group",
			"there are no HA groups in Proxmox VE %d: remove it, and write an HA rule in Proxmox", *r.Config.Proxmox.Version)
	}
	if *n.CloudInitDatastore != *n.OSDisk.Datastore {
		r.Datastore(at+".cloudInitDatastore", n.CloudInitDatastore)
	}
	if n.DataVMID != nil && n.VMID != nil && *n.DataVMID == *n.VMID {
		r.Addf(at+".dataVmId", "%d is the node's own id: choose one that no VM has", *n.DataVMID)
	}
}

// rootOptions checks options that an API token cannot set.
func (r *rules) rootOptions(at string, n spec.NamedNode) {
	if n.KVMArguments != nil {
		r.onlyRoot(at + ".kvmArguments")
	}
	if n.HookScript != nil {
		if !hookForm.MatchString(*n.HookScript) {
			r.Addf(at+".hookScript", "%q is no file id of a snippet such as local:snippets/hook.sh", *n.HookScript)
		}
		r.onlyRoot(at + ".hookScript")
	}
}

func (r *rules) display(at string, n spec.NamedNode) {
	if v := n.VGA; v != nil {
		if v.Memory != nil && (*v.Type == "none" || len(*v.Type) == 7 && (*v.Type)[:6] == "serial") {
			r.Addf(at+".vga.memory", "is for a display, and the type is %s: remove it", *v.Type)
		}
		if *v.Type == "serial0" && !*n.SerialConsole {
			r.Addf(at+".vga.type", "is serial0, and serialConsole is false: set it to true")
		}
	}
}

func (r *rules) usb(at string, n spec.NamedNode) {
	for i, u := range n.USB {
		path := check.Index(at+".usb", i)
		switch {
		case (u.Mapping == nil) == (u.Host == nil):
			r.Addf(path, "needs either mapping or host")
		case u.Host != nil && !usbForm.MatchString(*u.Host):
			r.Addf(path+".host", "%q is no USB device: write vendor:product (0bda:2838) or bus-port (1-2)", *u.Host)
		case u.Host != nil:
			r.onlyRoot(path + ".host")
		}
	}
}
