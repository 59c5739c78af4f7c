// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package spec

// Cluster holds what all nodes share.
type Cluster struct {
	// Name of the cluster; part of VM tags, file names, MAC addresses and the kubeconfig context. A living
	// cluster keeps it.
	Name *string `json:"name,omitempty"`
	// Endpoint is the Kubernetes API, "https://k8s.example.com:6443"; defaults to the VIP, else to
	// the first control plane.
	Endpoint *string `json:"endpoint,omitempty"`
	// VIP is the address that control planes share for the Kubernetes API.
	VIP *string `json:"vip,omitempty"`
	// VIPNetwork is the network (of the control planes) that carries the VIP; by default the one
	// whose subnet holds it.
	VIPNetwork *string `json:"vipNetwork,omitempty"`
	// AllowSchedulingOnControlPlanes lets control planes run workloads; by default exactly when
	// there are no workers.
	AllowSchedulingOnControlPlanes *bool `json:"allowSchedulingOnControlPlanes,omitempty"`
	// PodSubnets are the pods' networks: one, or one per IP family. A living cluster keeps them.
	PodSubnets []string `json:"podSubnets,omitempty" default:"10.244.0.0/16"`
	// ServiceSubnets are the services' networks: one, or one per IP family. A living cluster keeps them.
	ServiceSubnets []string `json:"serviceSubnets,omitempty" default:"10.96.0.0/12"`
	// DNSDomain is the cluster's domain. A living cluster keeps it.
	DNSDomain *string `json:"dnsDomain,omitempty" default:"cluster.local"`
	// Nameservers the nodes ask.
	Nameservers []string `json:"nameservers,omitempty"`
	// SearchDomains of the nodes.
	SearchDomains []string `json:"searchDomains,omitempty"`
	// TimeServers the nodes ask, or the clocks that the hypervisor gives them: /dev/ptp0, /dev/ptp_kvm.
	TimeServers []string `json:"timeServers,omitempty"`
	// ExtraHosts are entries of every node's hosts file: address to names.
	ExtraHosts map[string][]string `json:"extraHosts,omitempty"`
	// CertSANs are further names and addresses in the API server's and Talos's certificates,
	// beside the VIP, every node's address and the endpoint.
	CertSANs []string `json:"certSANs,omitempty"`
	// VMIDBase gives nodes without a vmId their ids: control planes from it, workers from it + 100.
	VMIDBase *int `json:"vmIdBase,omitempty" min:"100" max:"999000000"`
	// Tags of every VM, beside the nodes' own.
	Tags []string `json:"tags,omitempty"`
	// SecretsBundle adopts an existing cluster's secrets, in the form of `talosctl gen secrets`.
	SecretsBundle *Secret `json:"secretsBundle,omitempty"`
	// AcceptedCAs are further certificate authorities that nodes and clients trust, while the cluster goes from one
	// to another.
	AcceptedCAs *AcceptedCAs `json:"acceptedCAs,omitempty"`
	// Adopted says that the cluster already runs: it is never bootstrapped.
	Adopted *bool `json:"adopted,omitempty" default:"false"`
	// Protect sets Pulumi's protection on VMs and secrets; `pulumi destroy` then refuses.
	Protect *bool `json:"protect,omitempty" default:"false"`
}

// AcceptedCAs hold certificates of authorities that are trusted beside the cluster's own, in PEM form.
type AcceptedCAs struct {
	// Talos has those of the Talos API: the next one, or the one before.
	Talos []Text `json:"talos,omitempty"`
	// Kubernetes has those of the Kubernetes API.
	Kubernetes []Text `json:"kubernetes,omitempty"`
}

// AcceptedTalosCAs returns the further authorities of the Talos API.
func (c Cluster) AcceptedTalosCAs() []Text { return Value(c.AcceptedCAs).Talos }

// AcceptedKubernetesCAs returns the further authorities of the Kubernetes API.
func (c Cluster) AcceptedKubernetesCAs() []Text { return Value(c.AcceptedCAs).Kubernetes }
