// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package nodenet

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/network"
	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
	"github.com/siderolabs/talos/pkg/machinery/config"
	cfgtypes "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/nethelpers"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"
)

// Link describes a network card as Linux names it.
type Link struct {
	Name string
	MAC  string
}

// LinksOf names the cards: nocloud images boot with net.ifnames=0, other images name them after
// Proxmox's PCI slots.
func LinksOf(m *guest.Machine, platform string) []Link {
	links := make([]Link, 0, len(m.NICs))
	for i, nic := range m.NICs {
		name := fmt.Sprintf("eth%d", i)
		if platform != machineconfig.PlatformNocloud {
			name = fmt.Sprintf("ens%d", 18+nic.Index)
		}
		links = append(links, Link{Name: name, MAC: strings.ToLower(nic.MAC)})
	}

	return links
}

// PlatformAddresses returns the addresses that the image takes from its platform. Only nocloud images
// read the cloud-init drive.
func PlatformAddresses(m *guest.Machine, platform string) []netip.Prefix {
	if platform != machineconfig.PlatformNocloud || m.CloudInit == nil {
		return nil
	}

	var addrs []netip.Prefix
	for i, c := range m.CloudInit.IPConfigs {
		if !slices.ContainsFunc(m.NICs, func(nic guest.NIC) bool { return nic.Index == i }) {
			continue
		}
		for _, p := range []netip.Prefix{c.IPv4, c.IPv6} {
			if p.IsValid() {
				addrs = append(addrs, p)
			}
		}
	}

	return addrs
}

// PlatformGateways returns the default gateways that the image takes from its platform.
func PlatformGateways(m *guest.Machine, platform string) []netip.Addr {
	if platform != machineconfig.PlatformNocloud || m.CloudInit == nil {
		return nil
	}

	var gateways []netip.Addr
	for _, c := range m.CloudInit.IPConfigs {
		for _, g := range []netip.Addr{c.Gateway4, c.Gateway6} {
			if g.IsValid() {
				gateways = append(gateways, g)
			}
		}
	}

	return gateways
}

// ConfigGateways returns the default gateways that a configuration gives to links that exist.
func ConfigGateways(cfg config.Provider, links []Link) []netip.Addr {
	var gateways []netip.Addr
	if m := cfg.Machine(); m != nil {
		for _, d := range m.Network().Devices() {
			if !deviceExists(d, links) {
				continue
			}
			for _, r := range d.Routes() {
				p, err := netip.ParsePrefix(r.Network())
				if g, bad := netip.ParseAddr(r.Gateway()); bad == nil && (r.Network() == "" || err == nil && p.Bits() == 0) {
					gateways = append(gateways, g)
				}
			}
		}
	}

	aliases := aliasesOf(cfg, links)
	for _, l := range cfg.NetworkCommonLinkConfigs() {
		if isMissing(l, links, aliases) {
			continue
		}
		for _, r := range l.Routes() {
			if p, limited := r.Destination().Get(); limited && p.Bits() > 0 {
				continue
			}
			if g, ok := r.Gateway().Get(); ok && g.IsValid() {
				gateways = append(gateways, g)
			}
		}
	}

	return gateways
}

// isMissing reports whether a configured link is a physical one that the machine does not have.
func isMissing(l cfgtypes.NetworkCommonLinkConfig, links []Link, aliases map[string]bool) bool {
	_, physical := l.(cfgtypes.NetworkPhysicalLinkConfig)

	return physical && !linkExists(l.Name(), links, aliases)
}

// ConfigAddresses returns the addresses that a configuration gives to links that exist, and its VIPs.
func ConfigAddresses(cfg config.Provider, links []Link) (addrs []netip.Prefix, vips []netip.Addr) {
	if m := cfg.Machine(); m != nil {
		for _, d := range m.Network().Devices() {
			if !deviceExists(d, links) {
				continue
			}
			addrs = append(addrs, ParsePrefixes(d.Addresses())...)
			for _, vlan := range d.Vlans() {
				addrs = append(addrs, ParsePrefixes(vlan.Addresses())...)
			}
			if v := d.VIPConfig(); v != nil {
				if ip, err := netip.ParseAddr(v.IP()); err == nil {
					vips = append(vips, ip)
				}
			}
		}
	}

	aliases := aliasesOf(cfg, links)
	for _, l := range cfg.NetworkCommonLinkConfigs() {
		if isMissing(l, links, aliases) {
			continue
		}
		for _, a := range l.Addresses() {
			addrs = append(addrs, a.Address())
		}
	}
	for _, v := range cfg.NetworkVirtualIPConfigs() {
		if linkExists(v.Link(), links, aliases) || !looksPhysical(v.Link()) {
			vips = append(vips, v.VIP())
		}
	}

	return addrs, vips
}

// LetsIn returns which TCP ports the configuration's firewall lets connections in to. A caller's address is none of the
// site's, so that a rule for a port lets everybody in.
func LetsIn(cfg config.Provider) func(port int) bool {
	rules := cfg.NetworkRules()
	if rules == nil || rules.DefaultAction() == nethelpers.DefaultActionAccept {
		return func(int) bool { return true }
	}

	return func(port int) bool {
		return slices.ContainsFunc(rules.Rules(), func(r cfgtypes.NetworkRule) bool {
			return r.Protocol() == nethelpers.ProtocolTCP && slices.ContainsFunc(r.PortRanges(), func(p [2]uint16) bool {
				return port >= int(p[0]) && port <= int(p[1])
			})
		})
	}
}

// looksPhysical tells a card's name from that of a bond, bridge or VLAN, which the configuration
// itself creates.
func looksPhysical(name string) bool {
	return strings.HasPrefix(name, "eth") || strings.HasPrefix(name, "en")
}

func linkExists(name string, links []Link, aliases map[string]bool) bool {
	if aliases[name] {
		return true
	}
	for _, l := range links {
		if l.Name == name {
			return true
		}
	}

	return false
}

func deviceExists(d cfgtypes.Device, links []Link) bool {
	if sel := d.Selector(); sel != nil {
		return selects(sel, links)
	}

	name, _, _ := strings.Cut(d.Interface(), ".")

	return d.Dummy() || d.Bond() != nil || d.Bridge() != nil || linkExists(name, links, nil)
}

func selects(sel cfgtypes.NetworkDeviceSelector, links []Link) bool {
	for _, l := range links {
		matches := true
		for _, mac := range []string{sel.HardwareAddress(), sel.PermanentAddress()} {
			if mac != "" && !glob(strings.ToLower(mac), l.MAC) {
				matches = false
			}
		}
		if d := sel.KernelDriver(); d != "" && !glob(d, "virtio_net") {
			matches = false
		}
		if p := sel.Physical(); p != nil && !*p {
			matches = false
		}
		if matches {
			return true
		}
	}

	return false
}

// glob matches a pattern whose only wildcard is "*".
func glob(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == s
	}
	if !strings.HasPrefix(s, parts[0]) {
		return false
	}
	s = s[len(parts[0]):]
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(s, p)
		if i < 0 {
			return false
		}
		s = s[i+len(p):]
	}

	return strings.HasSuffix(s, parts[len(parts)-1])
}

// aliasesOf evaluates the link aliases of a configuration against the cards.
func aliasesOf(cfg config.Provider, links []Link) map[string]bool {
	aliases := map[string]bool{}
	for _, a := range cfg.NetworkLinkAliasConfigs() {
		for _, l := range links {
			mac, err := net.ParseMAC(l.MAC)
			if err != nil {
				continue
			}
			selector := a.LinkSelector()
			ok, err := selector.EvalBool(celenv.LinkLocator(), map[string]any{
				"link": &network.LinkStatusSpec{
					HardwareAddr: mac, PermanentAddr: mac, Driver: "virtio_net",
				},
			})
			if err == nil && ok {
				aliases[a.Name()] = true
			}
		}
	}

	return aliases
}

func ParsePrefixes(list []string) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range list {
		if p, err := netip.ParsePrefix(s); err == nil {
			out = append(out, p)

			continue
		}
		if a, err := netip.ParseAddr(s); err == nil {
			out = append(out, netip.PrefixFrom(a, a.BitLen()))
		}
	}

	return out
}
