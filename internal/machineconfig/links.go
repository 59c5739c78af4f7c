// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// inheritMTU is Proxmox's word for the bridge's MTU, which the card then tells the guest.
const inheritMTU = 1

// route describes a route of a device; the zero destination is the default route.
type route struct {
	destination netip.Prefix
	gateway     netip.Addr
	metric      int
}

// routesOf returns the device's routes: default routes only where a gateway is given.
func routesOf(d spec.Device) ([]route, error) {
	var routes []route
	for _, gateway := range []*string{d.Gateway, d.Gateway6} {
		if gateway == nil {
			continue
		}
		address, err := spec.ParseAddr(*gateway)
		if err != nil {
			return nil, fmt.Errorf("gateway: %w", err)
		}
		routes = append(routes, route{gateway: address})
	}
	for _, r := range d.Routes {
		destination, err := spec.ParseNetwork(r.Network)
		if err != nil {
			return nil, fmt.Errorf("route: %w", err)
		}
		if destination.Bits() == 0 {
			destination = netip.Prefix{} // Talos takes a default route without a destination alone
		}
		next := netip.Addr{}
		if r.Gateway != nil {
			if next, err = spec.ParseAddr(*r.Gateway); err != nil {
				return nil, fmt.Errorf("gateway: %w", err)
			}
		}
		routes = append(routes, route{destination: destination, gateway: next, metric: spec.Value(r.Metric)})
	}

	return routes, nil
}

// macOf returns the device's MAC address in the form that Talos compares.
func macOf(d spec.Device) (string, error) {
	if d.MAC == nil {
		return "", errors.New("the device has no MAC address")
	}
	mac, err := net.ParseMAC(*d.MAC)
	if err != nil {
		return "", fmt.Errorf("%q is not a MAC address", *d.MAC)
	}

	return mac.String(), nil
}

// mtuOf returns the device's MTU, 0 where the card says it.
func mtuOf(d spec.Device) int {
	if d.MTU != nil && *d.MTU != inheritMTU {
		return *d.MTU
	}

	return 0
}

// vipDevice returns the link that carries the VIP; empty on workers and without a VIP.
func (r *builder) vipDevice() (string, error) {
	if r.cfg.Cluster.VIP == nil || !r.node.IsControlPlane() {
		return "", nil
	}
	vip, err := spec.ParseAddr(*r.cfg.Cluster.VIP)
	if err != nil {
		return "", fmt.Errorf("VIP: %w", err)
	}
	for _, d := range r.node.Devices() {
		if named := r.cfg.Cluster.VIPNetwork; named != nil && *named != d.Name {
			continue
		}
		holds := slices.ContainsFunc(d.Prefixes(), func(p netip.Prefix) bool { return p.Contains(vip) })
		if holds || r.cfg.Cluster.VIPNetwork != nil {
			return linkName(d), nil
		}
	}

	return "", fmt.Errorf("no network of the node holds the VIP %s", vip)
}

// addLegacyNetwork writes what [builder.addNetwork] does in the fields of the machine configuration.
func (r *builder) addLegacyNetwork(vip string) error {
	n := r.machine.MachineNetwork
	for _, d := range r.node.Devices() {
		device, err := legacyDevice(d)
		if err != nil {
			return fmt.Errorf("network %q: %w", d.Name, err)
		}
		if vip == linkName(d) {
			device.DeviceVIPConfig = &v1alpha1.DeviceVIPConfig{SharedIP: spec.Value(r.cfg.Cluster.VIP)}
		}
		n.NetworkInterfaces = append(n.NetworkInterfaces, device)
	}
	n.NameServers = r.cfg.Cluster.Nameservers
	n.Searches = r.cfg.Cluster.SearchDomains
	for _, address := range sortedKeys(r.cfg.Cluster.ExtraHosts) {
		n.ExtraHostEntries = append(n.ExtraHostEntries,
			&v1alpha1.ExtraHost{HostIP: address, HostAliases: r.cfg.Cluster.ExtraHosts[address]})
	}
	if servers := r.cfg.Cluster.TimeServers; len(servers) > 0 {
		r.machine.MachineTime = &v1alpha1.TimeConfig{TimeServers: servers}
	}

	return nil
}

// legacyDevice selects the device by its MAC address and configures it.
func legacyDevice(d spec.Device) (*v1alpha1.Device, error) {
	mac, err := macOf(d)
	if err != nil {
		return nil, err
	}
	routes, err := routesOf(d)
	if err != nil {
		return nil, err
	}
	device := &v1alpha1.Device{
		DeviceSelector: &v1alpha1.NetworkDeviceSelector{NetworkDeviceHardwareAddress: mac},
		DeviceDHCP:     spec.Ptr(spec.Value(d.DHCP)),
		DeviceMTU:      mtuOf(d),
	}
	for _, prefix := range d.Prefixes() {
		device.DeviceAddresses = append(device.DeviceAddresses, prefix.String())
	}
	for _, route := range routes {
		legacy := &v1alpha1.Route{RouteMetric: uint32(route.metric)}
		if route.gateway.IsValid() {
			legacy.RouteGateway = route.gateway.String()
		}
		switch {
		case route.destination.IsValid():
			legacy.RouteNetwork = route.destination.String()
		case route.gateway.Is6():
			legacy.RouteNetwork = "::/0"
		default:
			legacy.RouteNetwork = "0.0.0.0/0"
		}
		device.DeviceRoutes = append(device.DeviceRoutes, legacy)
	}

	return device, nil
}

// sortedKeys returns a map's keys in order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
