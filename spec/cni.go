// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package spec

// CNI is the pod network.
type CNI struct {
	// Name of the plugin: Talos's own flannel, none, or Cilium.
	Name *string `json:"name,omitempty" enum:"flannel,none,cilium" default:"flannel"`
	// Cilium settings.
	Cilium *Cilium `json:"cilium,omitempty"`
}

// Cilium is installed at day 0.
type Cilium struct {
	// Install is how: the chart rendered into inline manifests, or a Job that runs the Cilium CLI
	// with its values in a ConfigMap.
	Install *string `json:"install,omitempty" enum:"chart,job" default:"chart"`
	// Chart says which chart.
	Chart Chart `json:"chart,omitempty"`
	// CLIImage of the install Job.
	CLIImage *string `json:"cliImage,omitempty"`
	// KubeProxyReplacement replaces kube-proxy.
	KubeProxyReplacement *bool `json:"kubeProxyReplacement,omitempty" default:"true"`
	// L2 announces LoadBalancer addresses on layer 2.
	L2 *CiliumL2 `json:"l2,omitempty"`
	// Pools are LoadBalancer address pools, by name.
	Pools map[string]CiliumPool `json:"pools,omitempty"`
	// BGP announces addresses by BGP.
	BGP *CiliumBGP `json:"bgp,omitempty"`
	// GatewayAPI turns Gateway API on and installs its CRDs, of the release that fits the chart.
	GatewayAPI *GatewayAPI `json:"gatewayApi,omitempty"`
	// Hubble turns flow observation on.
	Hubble *bool `json:"hubble,omitempty" default:"false"`
	// DefaultDeny denies traffic that no policy allows, but for names and what goes through Gateways.
	DefaultDeny *bool `json:"defaultDeny,omitempty" default:"false"`
}

// Chart is a Helm chart.
type Chart struct {
	// Repository is an HTTP repository ("https://helm.cilium.io"), an OCI one ("oci://…") or a
	// path relative to the project directory.
	Repository *string `json:"repository,omitempty"`
	// Name of the chart in the repository.
	Name *string `json:"name,omitempty"`
	// Version of the chart.
	Version *string `json:"version,omitempty"`
	// Digest of the chart's archive, "sha256:…".
	Digest *string `json:"digest,omitempty"`
	// Values override the chart's values, as YAML.
	Values *Text `json:"values,omitempty"`
	// Username for the repository.
	Username *string `json:"username,omitempty"`
	// Password of Username.
	Password *Secret `json:"password,omitempty"`
}

// CiliumL2 announces LoadBalancer addresses on layer 2.
type CiliumL2 struct {
	// Interfaces (regular expressions) that announce.
	Interfaces []string `json:"interfaces,omitempty"`
	// LoadBalancerIPs are announced.
	LoadBalancerIPs *bool `json:"loadBalancerIPs,omitempty" default:"true"`
	// ExternalIPs are announced.
	ExternalIPs *bool `json:"externalIPs,omitempty" default:"false"`
	// ExcludeControlPlanes keeps control planes from announcing.
	ExcludeControlPlanes *bool `json:"excludeControlPlanes,omitempty" default:"true"`
}

// CiliumPool is a LoadBalancer address pool: Start and Stop, or CIDR.
type CiliumPool struct {
	// Start is the first address.
	Start *string `json:"start,omitempty"`
	// Stop is the last address.
	Stop *string `json:"stop,omitempty"`
	// CIDR instead of Start and Stop.
	CIDR *string `json:"cidr,omitempty"`
}

// CiliumBGP announces addresses by BGP.
type CiliumBGP struct {
	// LocalASN of the nodes.
	LocalASN int `json:"localAsn" min:"1"`
	// Peers by name.
	Peers map[string]BGPPeer `json:"peers"`
}

// BGPPeer is a BGP neighbour.
type BGPPeer struct {
	// Address of the peer.
	Address string `json:"address"`
	// ASN of the peer.
	ASN int `json:"asn" min:"1"`
	// Password of the session.
	Password *Secret `json:"password,omitempty"`
}

// GatewayAPI turns Gateway API on.
type GatewayAPI struct {
	// Version of the CRDs, "v1.2.1"; fits the chart when unset.
	Version *string `json:"version,omitempty"`
	// CRDs are URLs or project paths of the CRDs; by default the upstream release's.
	CRDs []string `json:"crds,omitempty"`
	// APIServer puts a Gateway in front of the Kubernetes API.
	APIServer *GatewayAPIServer `json:"apiServer,omitempty"`
}

// GatewayAPIServer is a Gateway in front of the Kubernetes API: TLS goes through to the API servers,
// whose certificate has the name. Bring-up and nodes do not use it: they have cluster.endpoint.
type GatewayAPIServer struct {
	// Hostname by which clients ask, "api.example.com".
	Hostname string `json:"hostname"`
	// Address of the Gateway, from one of the pools; the next free one when unset.
	Address *string `json:"address,omitempty"`
	// Port of the Gateway.
	Port *int `json:"port,omitempty" min:"1" max:"65535" default:"6443"`
}
