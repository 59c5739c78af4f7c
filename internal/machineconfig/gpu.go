// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig

import (
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// gpuBundle holds what a vendor's GPUs need on a node.
type gpuBundle struct {
	// modules are loaded at boot.
	modules []string
	// sysctls the vendor's container runtime needs.
	sysctls map[string]string
	// label says that the node has a GPU, where the vendor's device plugin looks for it.
	label string
	// taint is the resource's own name, which pods that ask for it tolerate.
	taint string
}

// gpuBundles returns the vendors' bundles. The runtime class comes with the day-0 manifests.
func gpuBundles(vendor string) (gpuBundle, bool) {
	switch vendor {
	case "nvidia":
		return gpuBundle{
			modules: []string{"nvidia", "nvidia_uvm", "nvidia_drm", "nvidia_modeset"},
			sysctls: map[string]string{"net.core.bpf_jit_harden": "1"},
			label:   "nvidia.com/gpu.present",
			taint:   "nvidia.com/gpu",
		}, true
	case "amd":
		return gpuBundle{modules: []string{"amdgpu"}, label: "amd.com/gpu.present", taint: "amd.com/gpu"}, true
	case "intel":
		return gpuBundle{modules: []string{"i915"}, label: "intel.feature.node.kubernetes.io/gpu", taint: "gpu.intel.com/i915"}, true
	default:
		return gpuBundle{}, false
	}
}

// addGPU brings the bundle of the node's GPU. It runs after labels, taints and modules were
// written, and leaves what the user said alone.
func (r *builder) addGPU() error {
	if r.node.GPU == nil {
		return nil
	}
	bundle, ok := gpuBundles(spec.Value(r.node.GPU.Vendor))
	if !ok {
		return nil
	}
	for _, module := range bundle.modules {
		r.addModule(module)
	}
	for key, value := range bundle.sysctls {
		if _, said := r.machine.MachineSysctls[key]; !said {
			r.machine.MachineSysctls = with(r.machine.MachineSysctls, key, value)
		}
	}
	if _, said := r.machine.MachineNodeLabels[bundle.label]; !said {
		r.machine.MachineNodeLabels = with(r.machine.MachineNodeLabels, bundle.label, "true")
	}
	if _, said := r.node.Taints[bundle.taint]; said || !spec.Value(r.node.GPU.Taint) {
		return nil
	}
	r.machine.MachineNodeTaints = with(r.machine.MachineNodeTaints, bundle.taint, "present:NoSchedule")
	if !r.node.IsControlPlane() {
		r.registerTaints()
	}

	return nil
}
