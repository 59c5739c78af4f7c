// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package networks

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// isEdge reports whether an address is the first or the last that a machine of the network can have, where routers usually are.
func isEdge(network netip.Prefix, a netip.Addr) bool {
	return a == network.Masked().Addr().Next() || a == scope.LastOf(network).Prev()
}

// likelyGateway reports whether an address is where the router of a card's network usually is, so that another use of it is the mistake.
func likelyGateway(d spec.Network, a netip.Addr) bool {
	for _, p := range d.Prefixes() {
		if p.Contains(a) && isEdge(p, a) {
			return true
		}
	}

	return false
}

// addressOfGateway records a node whose address is that of a gateway.
func (r *rules) addressOfGateway(node string, gateway netip.Addr) {
	n, ok := r.Config.Node(node)
	if !ok {
		return
	}
	for _, d := range n.Devices() {
		for _, p := range d.Prefixes() {
			if p.Addr() == gateway {
				r.Addf(check.Key(scope.NodePath(n)+".networks", d.Name)+addressField(gateway),
					"%s is the address of the gateway: choose a free address", gateway)
			}
		}
	}
}

// nearestNetwork returns a hint at the network of a node that was probably meant.
func nearestNetwork(n spec.NamedNode, name string) string {
	names := scope.SortedKeys(n.Networks)
	if best := check.Nearest(name, names); best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}

	return ": name one of " + strings.Join(names, ", ")
}

// machinesOnly refuses networks of addresses that no pod and no service can have.
func (r *rules) machinesOnly(path string, texts []string) {
	if texts != nil && len(texts) == 0 {
		r.Addf(path, "is empty: write a network such as 10.244.0.0/16, or remove it")
	}
	for i, text := range texts {
		p, err := spec.ParseNetwork(text)
		a := p.Addr()
		if err == nil && (a.IsLoopback() || a.IsMulticast() || a.IsLinkLocalUnicast() || reserved.Contains(a) || thisNetwork.Contains(a)) {
			r.Addf(check.Index(path, i), "%s holds addresses that no pod or service can have: "+
				"use a private network such as 10.244.0.0/16 or fd00:10:244::/56", p)
		}
	}
}

// endpointName checks that the name of the Kubernetes API is not that of another machine.
func (r *rules) endpointName(u *url.URL) {
	const at = "cluster.endpoint"
	name := strings.ToLower(u.Hostname())
	if domain := *r.Config.Cluster.DNSDomain; strings.HasSuffix(name, ".svc") || strings.HasSuffix(name, "."+domain) {
		r.Addf(at, "%s is a name that only pods resolve, when the cluster runs: give a name that every node resolves, or the VIP", name)
	}
	if name == "localhost" {
		r.Addf(at, "%s is each machine itself: give the VIP, a control plane's address or a name that every node resolves", name)
	}
	if other, err := url.Parse(spec.Value(r.Config.Proxmox.Endpoint)); err == nil && other.Hostname() == name && strings.Contains(name, ".") {
		if _, err := spec.ParseAddr(name); err != nil {
			r.Addf(at, "%s is the Proxmox host of proxmox.endpoint, which runs no API server: give the name of the control planes", name)
		}
	}
	for _, n := range r.Config.Workers() {
		if *n.Hostname == name {
			r.Addf(at, "%s is the name of a worker, which runs no API server: give the name of the control planes", name)
		}
	}
}

// servers checks that the DNS and time servers are machines that nodes can ask before there is a cluster.
func (r *rules) servers() {
	c := r.Config.Cluster
	if r.Wrong("cluster.podSubnets") {
		c.PodSubnets = nil
	}
	if r.Wrong("cluster.serviceSubnets") {
		c.ServiceSubnets = nil
	}
	for path, texts := range map[string][]string{"cluster.nameservers": c.Nameservers, "cluster.timeServers": c.TimeServers} {
		for i, text := range texts {
			a, err := spec.ParseAddr(text)
			if err != nil {
				continue
			}
			at := check.Index(path, i)
			if a.IsLoopback() || a.IsUnspecified() || a.IsMulticast() || a.IsLinkLocalUnicast() {
				r.Addf(at, "%s is no machine that nodes reach: write the address of a server", a)
			}
			if network, edge := r.NoMachine(a); edge {
				r.Addf(at, "%s is the network's own or broadcast address in %s: write the address of a server", a, network)
			}
			for what, networks := range map[string][]string{"pods": c.PodSubnets, "services": c.ServiceSubnets} {
				for _, p := range scope.Prefixes(networks) {
					if p.Contains(a) {
						r.Addf(at, "%s is in the network of %s, %s, which nodes cannot ask before the cluster runs: write the address of a server outside",
							a, what, p)
					}
				}
			}
		}
	}
}

// poolOf returns the pool of LoadBalancer addresses that has an address; "" where none has.
func (r *rules) poolOf(a netip.Addr) string {
	c := r.Config.CNI.Cilium
	if c == nil {
		return ""
	}
	for _, name := range scope.SortedKeys(c.Pools) {
		if addresses, ok := scope.PoolRange(c.Pools[name]); ok && addresses.Contains(a) {
			return name
		}
	}

	return ""
}

// noRouter returns what a next hop is that is no router; "" where it may be one.
func (r *rules) noRouter(hop netip.Addr, own []netip.Prefix) string {
	if hop == r.VIP() {
		return "the cluster's VIP"
	}
	if pool := r.poolOf(hop); pool != "" {
		return "in the pool " + pool
	}
	for _, p := range own {
		if p.Contains(hop) && hop.Is4() && p.Bits() < 31 && (hop == p.Masked().Addr() || hop == scope.LastOf(p)) {
			return "the network's own or broadcast address in " + p.Masked().String()
		}
	}

	return ""
}

// routeTaken checks that a route does not take away what is reached otherwise: pods, services, the network of another card.
func (r *rules) routeTaken(at, card string, network netip.Prefix, d spec.Network) {
	if network.Bits() == 0 {
		return
	}
	c := r.Config.Cluster
	for what, texts := range map[string][]string{"pods": c.PodSubnets, "services": c.ServiceSubnets} {
		for _, p := range scope.Prefixes(texts) {
			if p.Overlaps(network) && network.Bits() >= p.Bits() {
				r.Addf(at+".network", "%s is in the network of %s, %s, which the cluster reaches by itself: remove the route", network, what, p)
			}
		}
	}
	node, ok := r.Config.Node(check.Elements(card)[1])
	if !ok {
		return
	}
	for _, other := range node.Devices() {
		for _, p := range other.Prefixes() {
			if p.Masked() == network && !hasPrefix(d, p.Masked()) {
				r.Addf(at+".network", "%s is the network of the node's card %s, which needs no route: remove it", network, other.Name)
			}
		}
	}
}

func hasPrefix(d spec.Network, network netip.Prefix) bool {
	for _, p := range d.Prefixes() {
		if p.Masked() == network {
			return true
		}
	}

	return false
}

// maskFlags are the flags that give the size of a node's share of the pods' network.
var maskFlags = []string{"node-cidr-mask-size", "node-cidr-mask-size-ipv4", "node-cidr-mask-size-ipv6"}

// shares checks the flags for the size of a node's share by themselves (kube-controller-manager: setNodeCIDRMaskSizes).
func (r *rules) shares() {
	given := r.Config.Kubernetes.ControllerManager.ExtraArgs
	pods := scope.Prefixes(r.Config.Cluster.PodSubnets)
	if len(pods) == 0 {
		return
	}
	for _, name := range maskFlags {
		text, ok := given[name]
		if !ok {
			continue
		}
		at := "kubernetes.controllerManager.extraArgs." + name
		six := strings.HasSuffix(name, "6") || len(pods) == 1 && pods[0].Addr().Is6()
		most := map[bool]int{true: 128, false: 32}[six]
		bits, err := strconv.Atoi(text)
		switch {
		case err != nil: // told where flags are checked
		case bits < 1 || bits > most:
			r.Addf(at, "%d is no prefix length: write a number from 1 to %d", bits, most)
		case name == maskFlags[0] && len(pods) > 1:
			r.Addf(at, "is not allowed in a dual-stack cluster: write %s and %s instead", maskFlags[1], maskFlags[2])
		case name != maskFlags[0] && len(pods) == 1 && strings.HasSuffix(name, "6") != pods[0].Addr().Is6():
			r.Addf(at, "is for another IP family than cluster.podSubnets, %s: remove it", pods[0])
		}
	}
}

// shareOf checks a node's share, given by a flag, against the pods' network.
func (r *rules) shareOf(flag, path string, p netip.Prefix, share int) {
	switch room := 1 << min(max(share-p.Bits(), 0), 30); {
	case r.Wrong(flag, path):
	case p.Addr().BitLen()-share < 4:
		r.Addf(flag, "%d leaves a node fewer than 16 addresses for its pods: write %d or less", share, p.Addr().BitLen()-4)
	case share < p.Bits():
		r.Addf(flag, "%d gives a node more than the pods' network %s has: write %d or more", share, p, p.Bits())
	case share-p.Bits() > mostShares:
		r.Addf(flag, "%d divides %s into more than the 65536 shares that Kubernetes takes: write %d or less", share, p, p.Bits()+mostShares)
	case len(r.Config.Nodes) > room:
		r.Addf(flag, "%d divides %s into shares for %d nodes, and there are %d: raise it, or use a larger network",
			share, p, room, len(r.Config.Nodes))
	default:
		return
	}
}

// podsPerNode checks that a node's share of the pods' network has an address for each pod that the kubelet may run.
func (r *rules) podsPerNode() {
	var kubelet struct {
		MaxPods int `yaml:"maxPods"`
	}
	extra := r.Config.Kubernetes.Kubelet.ExtraConfig
	if extra == nil || yaml.Unmarshal([]byte(*extra), &kubelet) != nil {
		return
	}
	const at = "kubernetes.kubelet.extraConfig.maxPods"
	for _, p := range scope.Prefixes(r.Config.Cluster.PodSubnets) {
		share, flag := podBits4, maskFlags[1]
		if p.Addr().Is6() {
			share, flag = podBits6, maskFlags[2]
		}
		for _, name := range []string{maskFlags[0], flag} {
			if bits, err := strconv.Atoi(r.Config.Kubernetes.ControllerManager.ExtraArgs[name]); err == nil {
				share = bits
			}
		}
		if room := 1<<min(max(p.Addr().BitLen()-share, 0), 30) - 2; kubelet.MaxPods > room && room > 0 && !r.Wrong(at, "cluster.podSubnets") {
			r.Addf(at, "%d is more than the %d addresses of a node's share of the pods' network, a /%d: lower it, or give nodes a larger share "+
				"by kubernetes.controllerManager.extraArgs.%s", kubelet.MaxPods, room, share, flag)
		}
	}
}

// hasGateway reports whether a node itself asks the gateway: if it is the node's own address, it is told there.
func hasGateway(n spec.NamedNode, gateway string) bool {
	for _, d := range n.Devices() {
		if spec.Value(d.Gateway) == gateway || spec.Value(d.Gateway6) == gateway {
			return true
		}
	}

	return false
}
