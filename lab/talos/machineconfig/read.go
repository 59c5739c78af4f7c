// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig

import (
	"net/netip"
	"net/url"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/net"
	"github.com/siderolabs/talos/pkg/machinery/cel"
	"github.com/siderolabs/talos/pkg/machinery/config"
	cfgtypes "github.com/siderolabs/talos/pkg/machinery/config/config"
)

// ClusterName returns the cluster's name, empty when the configuration has none.
func ClusterName(cfg config.Provider) string {
	if cl := cfg.K8sClusterConfig(); cl != nil {
		return cl.ClusterName()
	}

	return ""
}

// Endpoint returns the address of the Kubernetes API, empty when the configuration has none.
func Endpoint(cfg config.Provider) *url.URL {
	if cl := cfg.K8sClusterConfig(); cl != nil && cl.ClusterEndpoint() != nil {
		return cl.ClusterEndpoint()
	}

	return &url.URL{}
}

// ClusterID returns the cluster's identity, empty when the configuration has none.
func ClusterID(cfg config.Provider) string {
	if identity := cfg.DiscoveryIdentityConfig(); identity != nil {
		return identity.ClusterID()
	}

	return ""
}

// KubernetesCA returns the certificate of the Kubernetes API's authority, with its key on control
// planes; nil when the configuration has none.
func KubernetesCA(cfg config.Provider) *x509.PEMEncodedCertificateAndKey {
	ca := cfg.K8sAPIServerCAConfig()
	if ca == nil {
		return nil
	}
	if issuing := ca.IssuingCA(); issuing != nil {
		return issuing
	}
	for _, accepted := range ca.AcceptedCAs() {
		return &x509.PEMEncodedCertificateAndKey{Crt: accepted.Crt}
	}

	return nil
}

// AcceptedKubernetesCAs returns the certificates of further authorities of the Kubernetes API, as PEM.
func AcceptedKubernetesCAs(cfg config.Provider) []byte {
	var all []byte
	for _, accepted := range cfg.K8sAPIServerCAConfig().AcceptedCAs() {
		all = append(append(all, accepted.Crt...), '\n')
	}

	return all
}

// KubeletImage returns the kubelet's image, empty when the configuration has none.
func KubeletImage(cfg config.Provider) string {
	if kubelet := cfg.K8sKubeletConfig(); kubelet != nil {
		return kubelet.Image()
	}

	return ""
}

// ServiceIPs returns the address at a place in each of the cluster's service networks.
func ServiceIPs(cfg config.Provider, place int) ([]netip.Addr, error) {
	var found []netip.Addr
	network := cfg.K8sNetworkConfig()
	if network == nil {
		return nil, nil
	}
	for _, prefix := range network.ServiceCIDRs() {
		address, err := net.NthIPInNetwork(prefix, place)
		if err != nil {
			return nil, err // the caller says which address
		}
		found = append(found, address)
	}

	return found, nil
}

// Prefixes returns networks as text.
func Prefixes(prefixes []netip.Prefix) []string {
	var texts []string
	for _, p := range prefixes {
		texts = append(texts, p.String())
	}

	return texts
}

// InstallTarget holds what a node installs and where.
type InstallTarget interface {
	Image() string
	Disk() string
	DiskMatchExpression() (*cel.Expression, error)
}

// Install returns what the configuration has a node install: the document, else the section.
func Install(cfg config.Provider) InstallTarget {
	if doc := cfg.UnattendedInstallConfig(); doc != nil {
		return unattended{doc}
	}

	return cfg.Machine().Install()
}

// unattended decodes the document in the section's shape.
type unattended struct {
	doc cfgtypes.UnattendedInstallConfig
}

func (u unattended) Image() string { return u.doc.InstallerImage() }
func (u unattended) Disk() string  { return "" }
func (u unattended) DiskMatchExpression() (*cel.Expression, error) {
	match := u.doc.VolumeSelector()

	return &match, nil
}
