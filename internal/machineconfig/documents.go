// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/cel"
	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
	document "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/block"
	"github.com/siderolabs/talos/pkg/machinery/config/types/cluster"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime"
	"github.com/siderolabs/talos/pkg/machinery/constants"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// moveToDocuments moves sections of the machine configuration into documents of their own, as Talos
// wants them since the contract v1.14; it deprecates the sections. What a section says is said once,
// where the builder writes it.
func (r *builder) moveToDocuments() error {
	if !r.contract.KubernetesDocuments() {
		return nil
	}
	for _, move := range []func() error{
		r.moveIdentity, r.moveInstall, r.moveHostDNS, r.moveKernel, r.addVolumeDefaults,
		r.moveKubernetes, r.moveControlPlane,
	} {
		if err := move(); err != nil {
			return err
		}
	}

	return nil
}

// moveIdentity moves the cluster's identity and its discovery.
func (r *builder) moveIdentity() error {
	r.add(cluster.NewDiscoveryIdentityConfigV1Alpha1(r.cluster.ClusterID, r.cluster.ClusterSecret))
	r.cluster.ClusterID, r.cluster.ClusterSecret = "", ""
	r.cluster.ClusterDiscoveryConfig = nil
	if !spec.Value(r.cfg.Talos.Discovery) {
		return nil
	}
	endpoint, err := url.Parse(constants.DefaultDiscoveryServiceEndpoint)
	if err != nil {
		return fmt.Errorf("reading the discovery service's address: %w", err)
	}
	r.add(cluster.NewDiscoveryServiceConfigV1Alpha1("default", endpoint))

	return nil
}

// moveInstall moves what an ISO installs and where. A node without an install disk boots from the
// disk that its image was written to.
func (r *builder) moveInstall() error {
	install := r.machine.MachineInstall
	r.machine.MachineInstall = nil
	expression := ""
	switch {
	case install.InstallDiskSelector != nil:
		expression = fmt.Sprintf("disk.serial == %q", install.InstallDiskSelector.Serial)
	case strings.HasPrefix(install.InstallDisk, "/dev/disk/"):
		expression = fmt.Sprintf("%q in disk.symlinks", install.InstallDisk)
	case install.InstallDisk != "":
		expression = fmt.Sprintf("disk.dev_path == %q", install.InstallDisk)
	default:
		return nil
	}
	match, err := cel.ParseBooleanExpression(expression, celenv.DiskLocator())
	if err != nil {
		return fmt.Errorf("selecting the install disk: %w", err)
	}
	doc := runtime.NewUnattendedInstallConfigV1Alpha1()
	doc.Installer.Image = install.InstallImage
	doc.ProvisioningSpec.DiskSelector.Match = match
	doc.ProvisioningSpec.Wipe = install.InstallWipe
	r.add(doc)

	return nil
}

// moveHostDNS moves the node's own resolver beside the servers that it asks.
func (r *builder) moveHostDNS() error {
	dns := r.machine.MachineFeatures.HostDNSSupport
	r.machine.MachineFeatures.HostDNSSupport = nil
	if dns == nil {
		return nil
	}
	resolver := documentOf(r, func(*network.ResolverConfigV1Alpha1) bool { return true })
	if resolver == nil {
		resolver = network.NewResolverConfigV1Alpha1()
		r.add(resolver)
	}
	resolver.ResolverHostDNS = network.HostDNSConfig{
		HostDNSEnabled:              dns.HostDNSConfigEnabled,
		HostDNSForwardKubeDNSToHost: dns.HostDNSForwardKubeDNSToHost,
		HostDNSResolveMemberNames:   dns.HostDNSResolveMemberNames,
	}

	return nil
}

// moveKernel moves kernel parameters and modules.
func (r *builder) moveKernel() error {
	if parameters := r.machine.MachineSysctls; len(parameters) > 0 {
		doc := runtime.NewSysctlConfigV1Alpha1()
		doc.Params = parameters
		r.add(doc)
	}
	if parameters := r.machine.MachineSysfs; len(parameters) > 0 {
		doc := runtime.NewSysfsConfigV1Alpha1()
		doc.Params = parameters
		r.add(doc)
	}
	if kernel := r.machine.MachineKernel; kernel != nil {
		for _, module := range kernel.KernelModules {
			doc := runtime.NewKernelModuleConfigV1Alpha1(module.ModuleName)
			doc.ModuleParameters = module.ModuleParameters
			r.add(doc)
		}
	}
	r.machine.MachineSysctls, r.machine.MachineSysfs, r.machine.MachineKernel = nil, nil, nil

	return nil
}

// addVolumeDefaults adds what `talosctl gen config` gives new clusters: no set-user-ID programs or
// devices on the volume of the pods, filesystems that give freed blocks back, and containers in a
// namespace apart from the machine's own.
func (r *builder) addVolumeDefaults() error {
	ephemeral := documentOf(r, func(doc *block.VolumeConfigV1Alpha1) bool { return doc.Name() == constants.EphemeralPartitionLabel })
	if ephemeral == nil {
		ephemeral = volume(constants.EphemeralPartitionLabel)
		r.add(ephemeral)
	}
	ephemeral.MountSpec.MountSecure = spec.Ptr(true)
	trim := block.NewFilesystemTrimConfigV1Alpha1()
	trim.TrimInterval = constants.DefaultFilesystemTrimInterval
	profile := runtime.NewSecurityProfileConfigV1Alpha1()
	profile.WorkloadIsolationEnabled = spec.Ptr(true)
	r.add(trim, profile)

	return nil
}

// documentOf returns the builder's first document of a kind for which wanted reports true, else nil.
func documentOf[D interface {
	comparable
	document.Document
}](r *builder, wanted func(D) bool) D {
	var none D
	for _, doc := range r.documents {
		if found, ok := doc.(D); ok && wanted(found) {
			return found
		}
	}

	return none
}
