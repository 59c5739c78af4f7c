// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package networks

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// apiPort is where API servers listen.
const apiPort = "6443"

// endpoint checks that an address given for the Kubernetes API leads to an API server. A name may lead anywhere.
func (r *rules) endpoint() {
	const at = "cluster.endpoint"
	u, err := url.Parse(spec.Value(r.Config.Cluster.Endpoint))
	if err != nil || u.Hostname() == "" || r.Wrong(at) {
		return
	}
	r.endpointName(u)
	a, err := spec.ParseAddr(u.Hostname())
	if err != nil {
		return
	}
	what, worker := r.apiServerAt(a)
	if worker != "" {
		r.Addf(at, "%s is the address of worker %s, which runs no API server: give the VIP, or a control plane's address", a, worker)

		return
	}
	if what != "" {
		if u.Port() != apiPort {
			r.Addf(at, "%s asks %s at port %s, and API servers listen at %s: write https://%s", u.Host, what, portOf(u), apiPort, hostPort(a))
		}

		return
	}
	if other := r.whoHas(a); other != "" {
		r.Addf(at, "%s is %s, which runs no API server: give the VIP, or a control plane's address", a, other)
	} else if network, edge := r.NoMachine(a); edge {
		r.Addf(at, "%s is the network's own or broadcast address in %s: give the VIP, or a control plane's address", a, network)
	} else if a.IsLoopback() || a.IsUnspecified() || a.IsMulticast() || a.IsLinkLocalUnicast() {
		r.Addf(at, "%s is not an address that every node reaches: give the VIP, a control plane's address or a load balancer's", a)
	}
}

func portOf(u *url.URL) string {
	if u.Port() == "" {
		return "443"
	}

	return u.Port()
}

func hostPort(a netip.Addr) string { return netip.AddrPortFrom(a, 6443).String() }

// whoHas returns what has an address that belongs to no node: a machine, a gateway, a network of the cluster's own.
func (r *rules) whoHas(a netip.Addr) string {
	for _, other := range r.Outside() {
		if other.Addr == a {
			return other.What
		}
	}
	for _, n := range r.Config.Nodes {
		for _, d := range n.Devices() {
			for _, g := range scope.Gateways(d.Network) {
				if g == a {
					return "a gateway"
				}
			}
		}
	}
	if pool := r.poolOf(a); pool != "" {
		return "in the pool " + pool
	}
	for what, texts := range map[string][]string{"pods": r.Config.Cluster.PodSubnets, "services": r.Config.Cluster.ServiceSubnets} {
		for _, p := range scope.Prefixes(texts) {
			if p.Contains(a) {
				return "in the network of " + what + ", " + p.String()
			}
		}
	}

	return ""
}

// hostsApart checks that the Proxmox hosts are outside the networks of pods and services, which nodes take to be their own.
func (r *rules) hostsApart() {
	p := r.Config.Proxmox
	addresses := map[string]string{}
	if u, err := url.Parse(spec.Value(p.Endpoint)); err == nil {
		addresses["proxmox.endpoint"] = u.Hostname()
	}
	if p.SSH != nil {
		for host, address := range p.SSH.Nodes {
			addresses[check.Key("proxmox.ssh.nodes", host)] = strings.TrimSuffix(address, ":22")
		}
	}
	for _, at := range scope.SortedKeys(addresses) {
		a, err := spec.ParseAddr(addresses[at])
		for what, texts := range map[string][]string{"pod": r.Config.Cluster.PodSubnets, "service": r.Config.Cluster.ServiceSubnets} {
			for _, network := range scope.Prefixes(texts) {
				if err == nil && network.Contains(a) && !r.Wrong(at, "cluster."+what+"Subnets") {
					r.Addf(at, "%s is in %s, the network of %ss: write the host's address, or choose another network for %ss", a, network, what, what)
				}
			}
		}
	}
}

// taken checks that no other machine has the VIP or the address of a node.
func (r *rules) taken() {
	others := map[netip.Addr]string{}
	for _, other := range r.Outside() {
		others[other.Addr] = other.What
	}
	if what, taken := others[r.VIP()]; taken {
		r.Addf("cluster.vip", "%s is %s: choose a free address", r.VIP(), what)
	}
	for _, n := range r.Config.Nodes {
		for _, d := range n.Devices() {
			for _, p := range d.Prefixes() {
				if what, taken := others[p.Addr()]; taken {
					r.Addf(check.Key(scope.NodePath(n)+".networks", d.Name)+addressField(p.Addr()), "%s is %s: choose a free address", p.Addr(), what)
				}
			}
		}
	}
}

func addressField(a netip.Addr) string {
	if a.Is6() {
		return ".address6"
	}

	return ".address"
}

// apart checks that no two cards of a node are in one network: answers would leave by the other card.
func (r *rules) apart(at string, n spec.NamedNode) {
	type used struct {
		prefix netip.Prefix
		name   string
	}
	var before []used
	for _, d := range n.Devices() {
		if r.Wrong(check.Key(at+".networks", d.Name)) {
			continue
		}
		for _, p := range d.Prefixes() {
			for _, b := range before {
				if b.name != d.Name && b.prefix.Overlaps(p.Masked()) {
					r.Addf(check.Key(at+".networks", d.Name)+addressField(p.Addr()),
						"%s is in the network of %s too, %s: a node has one card in a network", p, b.name, b.prefix)
				}
			}
			before = append(before, used{p.Masked(), d.Name})
		}
	}
}

// apiServerAt returns which API server has an address, or the worker that has it; both empty where no node has it.
func (r *rules) apiServerAt(a netip.Addr) (server, worker string) {
	if a == r.VIP() {
		server = "the VIP"
	}
	for _, n := range r.Config.Nodes {
		if !slices.Contains(n.Addresses(), a) {
			continue
		}
		if !n.IsControlPlane() {
			return "", n.Name
		}
		server = "control plane " + n.Name
	}

	return server, ""
}

// routes checks that next hops can be reached, and that no route says what the card says already.
func (r *rules) routes(path string, d spec.Network) {
	own := d.Prefixes()
	for i, route := range d.Routes {
		at := check.Index(path+".routes", i)
		network, err := spec.ParseNetwork(route.Network)
		if err != nil {
			continue
		}
		for family, gateway := range map[bool]*string{true: d.Gateway, false: d.Gateway6} {
			if network.Bits() == 0 && network.Addr().Is4() == family && gateway != nil && route.Metric == nil {
				r.Addf(at+".network", "%s is the default route, which the card's gateway makes already: remove one of them, or give a metric", network)
			}
		}
		for _, p := range own {
			if p.Masked() == network.Masked() {
				r.Addf(at+".network", "%s is the card's own network, which needs no route: remove it", network)
			}
		}
		r.routeTaken(at, path, network, d)
		hop, err := spec.ParseAddr(spec.Value(route.Gateway))
		if err == nil && !*d.DHCP && len(own) > 0 && hop.Is4() == network.Addr().Is4() {
			r.nextHop(at+".gateway", hop, own)
		}
	}
}

// nextHop checks that a card with these networks reaches the next hop of a route.
func (r *rules) nextHop(at string, hop netip.Addr, own []netip.Prefix) {
	reached := hop.IsLinkLocalUnicast()
	for _, p := range own {
		reached = reached || p.Contains(hop)
		if p.Addr() == hop {
			r.Addf(at, "%s is the node's own address: write the address of a router", hop)
		}
	}
	switch what := r.noRouter(hop, own); {
	case what != "":
		r.Addf(at, "%s is %s: write the address of a router", hop, what)
	case !reached:
		r.Addf(at, "%s is in none of the card's networks (%s), so that nothing reaches it: write the address of a router there",
			hop, own[0].Masked())
	}
}

// families checks that nodes, pods and services speak the same IP families.
func (r *rules) sameFamilies(pods, services []netip.Prefix) {
	if len(pods) == 0 || len(services) == 0 || len(pods) != len(services) {
		return
	}
	if pods[0].Addr().Is4() != services[0].Addr().Is4() {
		which, fix := "is", "give both networks of one IP family"
		if len(pods) > 1 {
			which, fix = "begins with", "write both lists in the same order"
		}
		r.Addf("cluster.serviceSubnets", "%s %s, and podSubnets %s %s: %s",
			which, scope.Family(services[0].Addr()), which, scope.Family(pods[0].Addr()), fix)

		return
	}
	var without []string
	missing := ""
	for _, n := range r.Config.Nodes {
		for i, p := range pods {
			// a node takes a second IPv6 address from its router
			if !hasFamily(n, p.Addr().Is4()) && (i == 0 || p.Addr().Is4()) && len(n.Addresses()) > 0 {
				missing = scope.Family(p.Addr())
				without = append(without, n.Name)

				break
			}
		}
	}
	if len(without) > 0 {
		r.Addf("cluster.podSubnets", "hold %s, and node %s no address of that family: give the nodes one, or the pods another network",
			missing, scope.Have(without))
	}
}

// hasFamily reports whether a node has an address of the family, or may get one.
func hasFamily(n spec.NamedNode, four bool) bool {
	for _, d := range n.Devices() {
		if four && *d.DHCP {
			return true
		}
	}
	for _, a := range n.Addresses() {
		if a.Is4() == four {
			return true
		}
	}

	return false
}

// clusterDNS checks that the DNS servers of pods are the cluster's.
func (r *rules) clusterDNS(services []netip.Prefix) {
	k := r.Config.Kubernetes.Kubelet
	for i, text := range k.ClusterDNS {
		a, err := spec.ParseAddr(text)
		if err != nil || a.IsLinkLocalUnicast() || len(services) == 0 {
			continue
		}
		at := check.Index("kubernetes.kubelet.clusterDns", i)
		inside := false
		for _, s := range services {
			inside = inside || s.Contains(a)
			if a.Is4() && a == scope.LastOf(s) {
				r.Addf(at, "%s is the last address of %s, which no service gets: write that of the DNS service, such as %s", a, s, nth(s, 10))
			}
			if a == s.Addr().Next() || a == s.Addr() {
				r.Addf(at, "%s is the address of the service kubernetes: write that of the DNS service, such as %s", a, nth(s, 10))
			}
		}
		if !inside {
			r.Addf(at, "%s is outside the services' network %s, so that pods would not find services: write an address of it, such as %s",
				a, services[0], nth(services[0], 10))
		}
	}
}

// nth returns an address of a network by its number.
func nth(p netip.Prefix, n int) netip.Addr {
	a := p.Masked().Addr()
	for range n {
		a = a.Next()
	}

	return a
}
