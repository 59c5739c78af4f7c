// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig

import (
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// base lets the machinery generate the role's configuration, as `talosctl gen config` would; the
// builder then says what the settings add. The documents that the machinery puts beside it are
// left out: the builder writes its own.
func (r *builder) base() (*v1alpha1.Config, error) {
	kubernetes, err := versions.ParseKubernetes(spec.Value(r.cfg.Kubernetes.Version))
	if err != nil {
		return nil, err
	}
	input, err := generate.NewInput(spec.Value(r.cfg.Cluster.Name), r.cfg.Endpoint(), kubernetes.Bare(), r.options()...)
	if err != nil {
		return nil, fmt.Errorf("preparing the configuration: %w", err)
	}
	if r.node.IsControlPlane() {
		input.AdditionalSubjectAltNames = r.apiServerSANs()
	}
	input.AdditionalMachineCertSANs = r.talosSANs()
	if len(r.cfg.Cluster.PodSubnets) > 0 {
		input.PodNet = r.cfg.Cluster.PodSubnets
	}
	if len(r.cfg.Cluster.ServiceSubnets) > 0 {
		input.ServiceNet = r.cfg.Cluster.ServiceSubnets
	}

	role := machine.TypeWorker
	if r.node.IsControlPlane() {
		role = machine.TypeControlPlane
	}
	provider, err := input.Config(role)
	if err != nil {
		return nil, fmt.Errorf("generating the configuration: %w", err)
	}

	base := provider.RawV1Alpha1()
	base.ClusterConfig.ClusterNetwork.CNI = &v1alpha1.CNIConfig{CNIName: cniName(r.cfg)}

	return base, nil
}

// options returns the settings that the machinery's generator takes.
func (r *builder) options() []generate.Option {
	prism := 0
	if k := spec.Value(r.cfg.Talos.KubePrism); spec.Value(k.Enabled) {
		prism = spec.Value(k.Port)
	}

	return []generate.Option{
		generate.WithVersionContract(r.contract.Sections()),
		generate.WithSecretsBundle(r.bundle),
		generate.WithInstallDisk(spec.Value(r.node.InstallDisk)),
		generate.WithInstallImage(r.in.installer(r.node.Name)),
		generate.WithDNSDomain(spec.Value(r.cfg.Cluster.DNSDomain)),
		generate.WithAllowSchedulingOnControlPlanes(r.node.IsControlPlane() && r.cfg.SchedulingOnControlPlanes()),
		generate.WithClusterDiscovery(spec.Value(r.cfg.Talos.Discovery)),
		generate.WithKubePrismPort(prism),
	}
}

// cniName returns Talos's word for the pod network: "none" for all but its own flannel, since any other comes
// with the manifests.
func cniName(cfg spec.Config) string {
	if spec.Value(cfg.CNI.Name) == "flannel" {
		return "flannel"
	}

	return "none"
}
