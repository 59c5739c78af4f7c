// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package networks

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// maxDevices is how many network devices a VM can have.
const maxDevices = 32

// networks checks the network devices of a node.
func (r *rules) networks(at string, n spec.NamedNode) {
	if len(n.Networks) == 0 {
		r.Addf(at+".networks", "is required: name at least one network with the node's address")

		return
	}
	if len(n.Networks) > maxDevices {
		r.Addf(at+".networks", "%d networks are too many: the most is %d", len(n.Networks), maxDevices)
	}
	static := false
	indexes := map[int]string{}
	gateways, gateways6 := map[string]string{}, map[string]string{}
	for _, d := range n.Devices() {
		path := check.Key(at+".networks", d.Name)
		r.BlockName(path, d.Name)
		static = static || d.Address != nil || d.Address6 != nil
		if other, twice := indexes[d.Index]; twice {
			r.List.Between(path+".index", check.Key(at+".networks", other)+".index",
				"%d is the index of network %s and of %s: choose another", d.Index, other, d.Name)
		}
		indexes[d.Index] = d.Name
		r.device(path, d.Network)
		r.addressing(path, d.Network)
		r.onlyGateway(path+".gateway", d.Name, d.Gateway, gateways)
		r.onlyGateway(path+".gateway6", d.Name, d.Gateway6, gateways6)
	}
	r.apart(at, n)
	if !static && !r.Wrong(at+".networks") {
		r.Addf(at+".networks", "has no static address, at which the node could be reached: give one network an address")
	}
}

// onlyGateway records a second default route.
func (r *rules) onlyGateway(path, name string, gateway *string, seen map[string]string) {
	if gateway == nil {
		return
	}
	for other := range seen {
		r.Addf(path, "network %s has a default gateway too: keep one, and write routes for the rest", other)
	}
	seen[name] = *gateway
}

// device checks the virtual card.
func (r *rules) device(path string, d spec.Network) {
	if !scope.BridgeForm.MatchString(*d.Bridge) {
		r.Addf(path+".bridge",
			"%q is no bridge of Proxmox such as vmbr0: use up to 15 letters, digits, dots, dashes and "+
				"underscores", *d.Bridge)
	}
	r.mac(path+".mac", *d.MAC)
	switch mtu := spec.Value(d.MTU); {
	case d.MTU == nil || mtu == 1:
	case mtu < 576:
		r.Addf(path+".mtu", "%d is too small: the least is 576, and 1 takes the bridge's", mtu)
	case mtu < 1280 && d.Address6 != nil:
		r.Addf(path+".mtu", "%d is too small for IPv6: the least is 1280", mtu)
	case *d.Model != "virtio":
		r.Addf(path+".mtu", "is for model virtio, and the model is %s: remove it", *d.Model)
	}
	if d.Queues != nil && *d.Model != "virtio" {
		r.Addf(path+".queues", "are for model virtio, and the model is %s: remove them", *d.Model)
	}
}

// mac checks the hardware address of a card.
func (r *rules) mac(path, text string) {
	mac, err := net.ParseMAC(text)
	switch {
	case err != nil || len(mac) != 6 || len(text) != 17 || !strings.Contains(text, ":"):
		r.Addf(path, "%q is no MAC address: write six pairs of hexadecimal digits, such as bc:24:11:00:00:01", text)
	case mac[0]&1 == 1:
		r.Addf(path, "%s is a multicast address: make its first pair even", text)
	case mac.String() == "00:00:00:00:00:00":
		r.Addf(path, "%s is no address of a card", text)
	}
}

// addressing checks addresses, gateways and routes of one card.
func (r *rules) addressing(path string, d spec.Network) {
	r.family(path, "", d.Address, d.Subnet, d.Gateway, false)
	r.family(path, "6", d.Address6, d.Subnet6, d.Gateway6, true)
	switch {
	case *d.DHCP && d.Address != nil:
		r.Addf(path+".dhcp", "is true beside a static address: keep one of them")
	case *d.DHCP && d.Gateway != nil:
		r.List.Between(path+".gateway", path+".dhcp", "comes by DHCP on this card: keep one of them")
	}
	r.routes(path, d)
	seen := map[string]bool{}
	for i, route := range d.Routes {
		at := check.Index(path+".routes", i)
		network, ok := r.CIDR(at+".network", route.Network)
		same := fmt.Sprint(route.Network, " ", spec.Value(route.Metric))
		if ok && seen[same] {
			r.Addf(at+".network", "%s is listed twice: remove one, or give it another metric", network)
		}
		seen[same] = true
		if route.Gateway == nil {
			continue
		}
		gateway, err := spec.ParseAddr(*route.Gateway)
		switch {
		case err != nil:
			r.Addf(at+".gateway", "%s", err)
		case ok && gateway.Is4() != network.Addr().Is4():
			r.Addf(at+".gateway", "%s is of another IP family than %s", gateway, network)
		}
	}
}

// family checks one IP family of a card: suffix "" is IPv4 and "6" is IPv6.
func (r *rules) family(path, suffix string, address, subnet, gateway *string, six bool) {
	var within netip.Prefix
	if r.Wrong(path + ".subnet" + suffix) {
		return
	}
	if subnet != nil {
		p, ok := r.CIDR(path+".subnet"+suffix, *subnet)
		if !ok {
			return
		}
		if p.Addr().Is6() != six {
			r.Addf(path+".subnet"+suffix, "%s is of the other IP family", p)

			return
		}
		within = p
	}
	var own netip.Prefix
	if address != nil {
		p, err := spec.ParsePrefix(*address, spec.Value(subnet))
		if err != nil {
			r.Addf(path+".address"+suffix, "%s", err)

			return
		}
		if p.Addr().Is6() != six {
			r.Addf(path+".address"+suffix,
				"%s is of the other IP family: write it as %s", p.Addr(), map[bool]string{true: "address", false: "address6"}[six])

			return
		}
		if within.IsValid() && (!within.Contains(p.Addr()) || within.Bits() != p.Bits()) {
			r.Addf(path+".address"+suffix, "%s is outside the network %s: choose an address inside it", p, within)

			return
		}
		r.usable(path+".address"+suffix, p)
		own, within = p, p.Masked()
	}
	r.gateway(path+".gateway"+suffix, gateway, own, within, six)
}

var (
	reserved    = netip.MustParsePrefix("240.0.0.0/4")
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
)

// usable refuses the first and the last address of an IPv4 network, and ones no host can have.
func (r *rules) usable(path string, p netip.Prefix) {
	a := p.Addr()
	switch {
	case a.IsLoopback() || a.IsMulticast() || a.IsUnspecified() || reserved.Contains(a) || thisNetwork.Contains(a):
		r.Addf(path, "%s is no address that a machine can have", a)
	case a.IsLinkLocalUnicast():
		r.Addf(path, "%s is a link-local address, which no router passes on: choose another", a)
	case ofNetworkItself(p, a):
		r.Addf(path, "%s is the network's own or broadcast address in %s: choose one between", a, p.Masked())
	}
}

// ofNetworkItself reports whether an address is the first or the last of an IPv4 network, which no machine can have.
func ofNetworkItself(network netip.Prefix, a netip.Addr) bool {
	return a.Is4() && network.Bits() < 31 && (a == network.Masked().Addr() || a == scope.LastOf(network))
}

// gateway checks that a card reaches its gateway.
func (r *rules) gateway(path string, gateway *string, own, within netip.Prefix, six bool) {
	if gateway == nil {
		return
	}
	g, err := spec.ParseAddr(*gateway)
	switch {
	case err != nil:
		r.Addf(path, "%s", err)
	case g.Is6() != six:
		r.Addf(path, "%s is of the other IP family", g)
	case own.IsValid() && own.Addr() == g:
		if !isEdge(own, g) { // else it is told at the address
			r.Addf(path, "%s is the node's own address: write the router's", g)
		}
	case within.IsValid() && ofNetworkItself(within, g):
		r.Addf(path, "%s is the network's own or broadcast address in %s: write the router's", g, within.Masked())
	case within.IsValid() && !within.Contains(g) && !g.IsLinkLocalUnicast():
		r.Addf(path, "%s is outside the network %s: a gateway must be inside it", g, within)
	case !own.IsValid():
		r.List.Between(path, strings.Replace(path, "gateway", "address", 1), "needs a static address on this card: add it, or remove the gateway")
	}
}
