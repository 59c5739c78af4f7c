// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package networks

import (
	"net/netip"
	"slices"
	"strconv"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
)

// Bits of one node's share of the pods' networks.
const (
	podBits4 = 24
	podBits6 = 64
	// mostShares is how many bits may be between the pods' network and a node's share of it.
	mostShares = 16
	// serviceBits is how many bits of an address the API server gives to services.
	serviceBits = 20
)

// subnets checks that the networks of nodes, pods and services are apart and large enough.
func (r *rules) subnets() {
	c := r.Config.Cluster
	pods := r.CIDRs("cluster.podSubnets", c.PodSubnets)
	services := r.CIDRs("cluster.serviceSubnets", c.ServiceSubnets)
	r.families("cluster.podSubnets", pods)
	r.families("cluster.serviceSubnets", services)
	for path, texts := range map[string][]string{"cluster.podSubnets": c.PodSubnets, "cluster.serviceSubnets": c.ServiceSubnets} {
		r.machinesOnly(path, texts)
	}
	if len(pods) != len(services) && !r.Wrong("cluster.podSubnets", "cluster.serviceSubnets") {
		r.Addf(
			"cluster.serviceSubnets",
			"has %d and podSubnets has %d: give both one network, or both one per IP family", len(services), len(pods))
	}

	for i, p := range pods {
		r.roomForPods(check.Index("cluster.podSubnets", i), p)
		for _, s := range services {
			if r.Wrong(check.Index("cluster.podSubnets", i)) {
				break
			}
			if p.Overlaps(s) {
				r.Addf(check.Index("cluster.podSubnets", i),
					"%s overlaps the services' network %s: choose networks that are apart", p, s)
			}
		}
	}
	for i, s := range services {
		if s.Addr().BitLen()-s.Bits() < 8 {
			r.Addf(check.Index("cluster.serviceSubnets", i),
				"%s has fewer than 256 addresses: use /%d or larger", s, s.Addr().BitLen()-8)
		}
		if s.Addr().BitLen()-s.Bits() > serviceBits && !r.Wrong(check.Index("cluster.serviceSubnets", i)) {
			r.Addf(check.Index("cluster.serviceSubnets", i),
				"%s is too large for the API server, which takes up to 2^%d addresses: use /%d", s, serviceBits, s.Addr().BitLen()-serviceBits)
		}
	}
	r.nodeNetworks(pods, services)
	if !r.Wrong("cluster.podSubnets", "cluster.serviceSubnets") {
		r.sameFamilies(pods, services)
		r.clusterDNS(services)
	}
}

// families checks that there is one network, or one per IP family.
func (r *rules) families(path string, networks []netip.Prefix) {
	switch {
	case len(networks) > 2:
		r.Addf(path, "%d networks are too many: give one, or one per IP family", len(networks))
	case len(networks) == 2 && networks[0].Addr().Is4() == networks[1].Addr().Is4():
		r.Addf(path, "%s and %s are of the same IP family: give one, or one per family", networks[0], networks[1])
	}
}

// roomForPods checks that every node gets its share of the pods' network.
func (r *rules) roomForPods(path string, p netip.Prefix) {
	share, flag := podBits4, "node-cidr-mask-size-ipv4"
	if p.Addr().Is6() {
		share, flag = podBits6, "node-cidr-mask-size-ipv6"
	}
	from := ""
	for _, name := range []string{"node-cidr-mask-size", flag} {
		bits, err := strconv.Atoi(r.Config.Kubernetes.ControllerManager.ExtraArgs[name])
		if at := "kubernetes.controllerManager.extraArgs." + name; err == nil && bits > 0 && bits <= p.Addr().BitLen() && !r.Wrong(at) {
			share, from = bits, at
		}
	}
	if from != "" {
		r.shareOf(from, path, p, share)

		return
	}
	if r.Wrong(path) {
		return
	}
	if share-p.Bits() > mostShares {
		r.Addf(path, "%s is too large: Kubernetes divides a network into shares of a /%d, at most 65536 of them, so that it begins at /%d",
			p, share, share-mostShares)
	}
	if p.Bits() > share {
		r.Addf(path, "%s is smaller than one node's share, a /%d: use a larger network", p, share)

		return
	}
	room := 1 << min(share-p.Bits(), 30)
	if n := len(r.Config.Nodes); n > room {
		r.Addf(path, "%s has room for %d nodes (a /%d each), and there are %d: use a larger network", p, room, share, n)
	}
}

// alone records an address of one node whose network is that of pods or services, while another node is in a network apart from them,
// and reports whether it is such a one.
func (r *rules) alone(at string, network netip.Prefix, clusters []netip.Prefix) bool {
	of := slices.IndexFunc(clusters, network.Overlaps)
	if of < 0 || network.Bits() < clusters[of].Bits() {
		return false
	}
	for _, n := range r.Config.Nodes {
		for _, d := range n.Devices() {
			for _, p := range d.Prefixes() {
				if elements := check.Elements(at); p.Masked() == network && n.Name != elements[1] {
					return false
				}
			}
		}
	}
	if len(r.Config.Nodes) < 2 {
		return false
	}
	r.Addf(at, "is in %s, a network of pods or services: choose an address of the nodes' network", clusters[of])

	return true
}

// nodeNetworks checks the networks that nodes are in against pods and services.
func (r *rules) nodeNetworks(pods, services []netip.Prefix) {
	for _, n := range r.Config.Nodes {
		for _, d := range n.Devices() {
			for _, p := range d.Prefixes() {
				network := p.Masked()
				if r.alone(check.Key(scope.NodePath(n)+".networks", d.Name)+addressField(p.Addr()), network, slices.Concat(pods, services)) {
					continue
				}
				for i, pod := range pods {
					if pod.Overlaps(network) && !r.Wrong(check.Index("cluster.podSubnets", i)) {
						r.Addf(check.Index("cluster.podSubnets", i),
							"%s overlaps the nodes' network %s: choose a network apart from it", pod, network)
					}
				}
				for i, service := range services {
					if service.Overlaps(network) && !r.Wrong(check.Index("cluster.serviceSubnets", i)) {
						r.Addf(check.Index("cluster.serviceSubnets", i),
							"%s overlaps the nodes' network %s: choose a network apart from it", service, network)
					}
				}
			}
		}
	}
}
