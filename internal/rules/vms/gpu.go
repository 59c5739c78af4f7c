// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package vms

import (
	"regexp"
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/image"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// pciIDForm is vendor and device.
var pciIDForm = regexp.MustCompile(`^[0-9a-f]{4}:[0-9a-f]{4}$`)

// gpuExtensions are, by vendor, groups of extensions of which the image needs one each.
var gpuExtensions = map[string][][]string{
	"nvidia": {
		{
			"nvidia-open-gpu-kernel-modules-lts", "nvidia-open-gpu-kernel-modules-production",
			"nonfree-kmod-nvidia-lts", "nonfree-kmod-nvidia-production",
		},
		{"nvidia-container-toolkit-lts", "nvidia-container-toolkit-production"},
	},
	"amd":   {{"amdgpu"}},
	"intel": {{"i915", "xe"}},
}

// gpu checks passed-through PCI devices and that a GPU's bundle is complete.
func (r *rules) gpu(at string, n spec.NamedNode) {
	if n.GPU == nil {
		return
	}
	g, at := *n.GPU, at+".gpu"
	switch {
	case (g.Mapping == nil) == (len(g.Devices) == 0):
		r.Addf(at, "needs either mapping or devices")
	case g.Mapping != nil && len(g.Identities) > 0:
		r.Addf(at+".identities", "are for devices, and mapping names a mapping that is there: remove them")

		return
	case g.Mapping != nil && !mappingForm.MatchString(*g.Mapping):
		r.Addf(at+".mapping", "%q is no name of a resource mapping", *g.Mapping)
	}
	if g.ROMFile != nil && (strings.ContainsAny(*g.ROMFile, "/,;") || *g.ROMFile == "..") {
		r.Addf(at+".romFile", "%q is no file of the host's /usr/share/kvm: write its name alone", *g.ROMFile)
	}
	r.gpuDevices(at, g)
	r.gpuIdentities(at, g)
	if *g.PCIe && *n.Machine != "q35" {
		r.Addf(at+".pcie", "needs machine q35, and machine is %s: change one of them", *n.Machine)
	}
	r.gpuBundle(at, n, g)
}

// gpuDevices checks the PCI devices that are named one by one.
func (r *rules) gpuDevices(at string, g spec.GPU) {
	for i, device := range g.Devices {
		path := check.Index(at+".devices", i)
		switch {
		case !scope.PCIAddressForm.MatchString(device):
			r.Addf(path,
				"%q is no PCI address: write domain:bus:device.function in lower-case hexadecimal, such as "+
					"0000:01:00.0, or leave the function out for all of them", device)
		case slices.Index(g.Devices, device) != i:
			r.Addf(path, "%s is listed twice: remove it", device)
		case slices.Contains(g.Devices, scope.Functions(device)) && scope.Functions(device) != device:
			r.Addf(path, "%s is a function of %s, which is listed with all of them: keep one of the two", device, scope.Functions(device))
		case len(g.Identities) == 0:
			r.onlyRoot(path)
		case !hasKey(g.Identities, device) && len(g.Identities) != len(g.Devices):
			r.Addf(at+".identities", "lack %s: say what every device is, or nothing of any", device)
		}
	}
}

// gpuIdentities checks what is said of the devices that an API token may pass through.
func (r *rules) gpuIdentities(at string, g spec.GPU) {
	for _, device := range scope.SortedKeys(g.Identities) {
		path, identity := check.Key(at+".identities", device), g.Identities[device]
		if !slices.Contains(g.Devices, device) && !r.Wrong(at+".devices") {
			r.Addf(path, "%s is not among the devices", device)
		}
		if !pciIDForm.MatchString(identity.ID) {
			r.Addf(path+".id", "%q is no vendor:device such as 10de:2684", identity.ID)
		}
		if identity.SubsystemID != nil && !pciIDForm.MatchString(*identity.SubsystemID) {
			r.Addf(path+".subsystemId", "%q is no vendor:device such as 10de:16a1", *identity.SubsystemID)
		}
	}
}

func hasKey[V any](m map[string]V, key string) bool {
	_, ok := m[key]

	return ok
}

// mistyped reports whether an extension of a list does not exist: it may be the one that is missed.
func (r *rules) mistyped(extensions []string) bool {
	return slices.ContainsFunc(extensions, func(name string) bool {
		_, err := image.Extension(name, *r.Config.Talos.Version)

		return err != nil
	})
}

// gpuBundle checks that the image brings the drivers.
func (r *rules) gpuBundle(at string, n spec.NamedNode, g spec.GPU) {
	img := r.Config.Image(n)
	if g.Vendor == nil || img.SchematicFile != nil || r.Wrong(scope.NodePath(n)+".image") || r.mistyped(img.Extensions) {
		return
	}
	var lacking []string
	for _, group := range gpuExtensions[*g.Vendor] {
		if !slices.ContainsFunc(group, func(short string) bool { return spec.HasExtension(img, "siderolabs/"+short) }) {
			lacking = append(lacking, "one of "+strings.Join(group, ", "))
		}
	}
	if len(lacking) > 0 {
		r.Addf(at+".vendor", "is %s, and image %s lacks its extensions: add %s", *g.Vendor, *n.Node.Image, strings.Join(lacking, ", and "))
	}
}
