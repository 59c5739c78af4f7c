// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// addSystem writes kernel parameters and modules, files, the resolver, and API access from pods.
func (r *builder) addSystem() error {
	r.machine.MachineSysctls = merge(maps.Clone(r.cfg.Talos.Sysctls), r.node.Sysctls)
	r.machine.MachineSysfs = maps.Clone(r.cfg.Talos.Sysfs)
	r.machine.MachineInstall.InstallWipe = spec.Ptr(spec.Value(r.cfg.Talos.WipeInstallDisk))
	r.selectInstallDisk()
	modules := maps.Clone(r.cfg.Talos.KernelModules)
	for name, parameters := range r.node.KernelModules {
		if modules == nil {
			modules = map[string][]string{}
		}
		modules[name] = parameters
	}
	for _, name := range sortedKeys(modules) {
		r.addModule(name, modules[name]...)
	}
	if dns := r.cfg.Talos.HostDNS; dns != nil {
		enabled := spec.Value(dns.Enabled)
		r.machine.MachineFeatures.HostDNSSupport = &v1alpha1.HostDNSConfig{
			HostDNSConfigEnabled:        &enabled,
			HostDNSForwardKubeDNSToHost: dns.ForwardKubeDNSToHost,
			HostDNSResolveMemberNames:   dns.ResolveMemberNames,
		}
	}
	if roles, namespaces := r.cfg.TalosAPIAccess(); len(roles) > 0 && r.node.IsControlPlane() {
		r.machine.MachineFeatures.KubernetesTalosAPIAccessConfig = &v1alpha1.KubernetesTalosAPIAccessConfig{
			AccessEnabled: spec.Ptr(true), AccessAllowedRoles: roles, AccessAllowedKubernetesNamespaces: namespaces,
		}
	}

	return r.addFiles()
}

// selectInstallDisk prefers, on a node that is no VM, a serial number that was given to the OS disk over the device's
// name, which depends on the order in which the kernel finds the disks.
func (r *builder) selectInstallDisk() {
	disk := spec.Value(r.node.OSDisk)
	if r.node.VMID != nil || disk.Serial == nil || r.machine.MachineInstall.InstallDisk != spec.DevicePath(disk) {
		return
	}
	r.machine.MachineInstall.InstallDisk = ""
	r.machine.MachineInstall.InstallDiskSelector = &v1alpha1.InstallDiskSelector{Serial: *disk.Serial}
}

// addModule loads a kernel module at boot, once.
func (r *builder) addModule(name string, parameters ...string) {
	if r.machine.MachineKernel == nil {
		r.machine.MachineKernel = &v1alpha1.KernelConfig{}
	}
	for _, m := range r.machine.MachineKernel.KernelModules {
		if m.ModuleName == name {
			return
		}
	}
	r.machine.MachineKernel.KernelModules = append(r.machine.MachineKernel.KernelModules,
		&v1alpha1.KernelModuleConfig{ModuleName: name, ModuleParameters: parameters})
}

// addFiles writes the machine files, by path.
func (r *builder) addFiles() error {
	for _, path := range sortedKeys(r.cfg.Talos.Files) {
		file := r.cfg.Talos.Files[path]
		text := spec.Value(file.Permissions)
		mode, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimPrefix(text, "0o"), "0"), 8, 32)
		if err != nil {
			return check.At(check.Key("talos.files", path)+".permissions", fmt.Errorf(`%q is not an octal mode such as "0o644"`, text))
		}
		r.machine.MachineFiles = append(r.machine.MachineFiles, &v1alpha1.MachineFile{
			FileContent:     string(file.Content),
			FilePermissions: v1alpha1.FileMode(mode),
			FilePath:        path,
			FileOp:          spec.Value(file.Op),
		})
	}

	return nil
}
