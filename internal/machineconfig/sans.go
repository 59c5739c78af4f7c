// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig

import (
	"net/url"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// apiServerSANs returns the names in the Kubernetes API's certificate: VIP, endpoint, every node's
// addresses and name, and what the cluster adds.
func (r *builder) apiServerSANs() []string {
	sans := r.sharedSANs()
	for _, n := range r.cfg.Nodes {
		sans = append(sans, nodeSANs(n)...)
	}

	return unique(append(sans, r.cfg.Cluster.CertSANs...))
}

// talosSANs returns the names in the node's Talos certificate. Clients reach workers through control
// planes, so that a worker vouches for itself only; a new node then leaves other workers' alone.
func (r *builder) talosSANs() []string {
	if r.node.IsControlPlane() {
		return r.apiServerSANs()
	}

	return unique(append(nodeSANs(r.node), r.cfg.Cluster.CertSANs...))
}

// sharedSANs returns the VIP, the endpoint's host and the name of the Gateway in front of the API.
func (r *builder) sharedSANs() []string {
	var sans []string
	if vip := spec.Value(r.cfg.Cluster.VIP); vip != "" {
		sans = append(sans, vip)
	}
	if endpoint, err := url.Parse(r.cfg.Endpoint()); err == nil && endpoint.Hostname() != "" {
		sans = append(sans, endpoint.Hostname())
	}
	if cilium := spec.Value(r.cfg.CNI.Cilium); cilium.GatewayAPI != nil && cilium.GatewayAPI.APIServer != nil {
		sans = append(sans, cilium.GatewayAPI.APIServer.Hostname)
	}

	return sans
}

// nodeSANs returns the node's addresses and its name.
func nodeSANs(n spec.NamedNode) []string {
	var sans []string
	for _, address := range n.Addresses() {
		sans = append(sans, address.String())
	}

	return append(sans, hostname(n))
}

// hostname returns the node's name in Talos and Kubernetes.
func hostname(n spec.NamedNode) string { return spec.Value(n.Hostname) }

// unique drops repetitions and keeps the order.
func unique(list []string) []string {
	seen := make(map[string]bool, len(list))
	var kept []string
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			kept = append(kept, s)
		}
	}

	return kept
}
