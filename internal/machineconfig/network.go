// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig

import (
	"fmt"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/cel"
	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/nethelpers"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// addHostname fixes the node's name.
func (r *builder) addHostname() error {
	if !r.contract.NetworkDocuments() {
		r.machine.MachineNetwork.NetworkHostname = hostname(r.node)

		return nil
	}
	doc := network.NewHostnameConfigV1Alpha1()
	// Without this, the document would both name the node and derive a name.
	off := nethelpers.AutoHostnameKindOff
	doc.ConfigAuto = &off
	doc.ConfigHostname = hostname(r.node)
	r.add(doc)

	return nil
}

// addNetwork configures every network device: one that is left out would have no address, since
// any link document turns Talos's DHCP on all links off.
func (r *builder) addNetwork() error {
	vip, err := r.vipDevice()
	if err != nil {
		return err
	}
	if !r.contract.NetworkDocuments() {
		return r.addLegacyNetwork(vip)
	}
	for _, d := range r.node.Devices() {
		if err := r.addLink(d); err != nil {
			return fmt.Errorf("network %q: %w", d.Name, err)
		}
	}
	if vip != "" {
		doc := network.NewLayer2VIPConfigV1Alpha1(spec.Value(r.cfg.Cluster.VIP))
		doc.LinkName = vip
		r.add(doc)
	}
	if err := r.addResolver(); err != nil {
		return err
	}
	if servers := r.cfg.Cluster.TimeServers; len(servers) > 0 {
		doc := network.NewTimeSyncConfigV1Alpha1()
		if strings.HasPrefix(servers[0], "/dev/") { // a clock that the hypervisor gives its machines
			doc.TimePTP = &network.PTPConfig{Devices: servers}
		} else {
			doc.TimeNTP = &network.NTPConfig{Servers: servers}
		}
		r.add(doc)
	}
	for _, address := range sortedKeys(r.cfg.Cluster.ExtraHosts) {
		doc := network.NewStaticHostConfigV1Alpha1(address)
		doc.Hostnames = r.cfg.Cluster.ExtraHosts[address]
		r.add(doc)
	}

	return nil
}

// linkName returns the name that the documents give to a device: Proxmox's own.
func linkName(d spec.Device) string { return fmt.Sprintf("net%d", d.Index) }

// addLink names the device by its MAC address, whatever the kernel calls it, and configures it.
func (r *builder) addLink(d spec.Device) error {
	mac, err := macOf(d)
	if err != nil {
		return err
	}
	match, err := cel.ParseBooleanExpression(fmt.Sprintf("mac(link.hardware_addr) == %q", mac), celenv.LinkLocator())
	if err != nil {
		return fmt.Errorf("selecting the device by its MAC address: %w", err)
	}
	alias := network.NewLinkAliasConfigV1Alpha1(linkName(d))
	alias.Selector.Match = match
	link := network.NewLinkConfigV1Alpha1(linkName(d))
	for _, prefix := range d.Prefixes() {
		link.LinkAddresses = append(link.LinkAddresses, network.AddressConfig{AddressAddress: prefix})
	}
	if mtu := mtuOf(d); mtu > 0 {
		link.LinkMTU = uint32(mtu)
	}
	routes, err := routesOf(d)
	if err != nil {
		return err
	}
	for _, route := range routes {
		doc := network.RouteConfig{RouteMetric: uint32(route.metric)}
		doc.RouteDestination = meta.Prefix{Prefix: route.destination}
		doc.RouteGateway = meta.Addr{Addr: route.gateway}
		link.LinkRoutes = append(link.LinkRoutes, doc)
	}
	r.add(alias, link)
	if spec.Value(d.DHCP) {
		r.add(network.NewDHCPv4ConfigV1Alpha1(linkName(d)))
	}

	return nil
}

// addResolver says which servers the node asks for names.
func (r *builder) addResolver() error {
	if len(r.cfg.Cluster.Nameservers)+len(r.cfg.Cluster.SearchDomains) == 0 {
		return nil
	}
	doc := network.NewResolverConfigV1Alpha1()
	for _, text := range r.cfg.Cluster.Nameservers {
		address, err := spec.ParseAddr(text)
		if err != nil {
			return check.At("cluster.nameservers", err)
		}
		doc.ResolverNameservers = append(doc.ResolverNameservers, network.NameserverConfig{Address: meta.Addr{Addr: address}})
	}
	doc.ResolverSearchDomains.SearchDomains = r.cfg.Cluster.SearchDomains
	r.add(doc)

	return nil
}
