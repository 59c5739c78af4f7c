// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package vmargs

import (
	"net/netip"
	"strings"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/vm"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	nodevm "github.com/talos-proxmox/talos-proxmox/internal/vm"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// networkDevices returns net0, net1, … in the order of their indexes.
func networkDevices(n spec.NamedNode) vm.VirtualMachineNetworkDeviceArray {
	all := vm.VirtualMachineNetworkDeviceArray{}
	for _, d := range n.Devices() {
		device := vm.VirtualMachineNetworkDeviceArgs{
			Enabled:    pulumi.Bool(true),
			Bridge:     pulumi.String(*d.Bridge),
			Model:      pulumi.String(*d.Model),
			MacAddress: pulumi.String(strings.ToUpper(*d.MAC)),
			Firewall:   pulumi.Bool(*d.Firewall),
			VlanId:     pulumi.IntPtrFromPtr(d.VLAN),
			Mtu:        pulumi.IntPtrFromPtr(d.MTU),
			Queues:     pulumi.IntPtrFromPtr(d.Queues),
		}
		if d.RateLimit != nil {
			device.RateLimit = pulumi.Float64(float64(*d.RateLimit))
		}
		all = append(all, device)
	}

	return all
}

// initialization returns the cloud-init drive, which gives the node its address before it has a
// configuration. Only the nocloud platform reads it.
func initialization(node Node) vm.VirtualMachineInitializationPtrInput {
	n := node.Node
	if *node.Image.Platform != "nocloud" {
		return nil
	}
	args := vm.VirtualMachineInitializationArgs{
		DatastoreId: pulumi.String(*n.CloudInitDatastore),
		Interface:   pulumi.String(nodevm.CloudInitInterface(node.Image)),
		IpConfigs:   ipConfigs(n),
	}
	if cluster := node.Cluster; len(cluster.Nameservers)+len(cluster.SearchDomains) > 0 {
		dns := vm.VirtualMachineInitializationDnsArgs{}
		if len(cluster.Nameservers) > 0 {
			dns.Servers = pulumi.ToStringArray(cluster.Nameservers)
		}
		if len(cluster.SearchDomains) > 0 {
			dns.Domain = pulumi.String(strings.Join(cluster.SearchDomains, " "))
		}
		args.Dns = dns
	}

	return args
}

// ipConfigs returns one entry for each network device, in the same order.
func ipConfigs(n spec.NamedNode) vm.VirtualMachineInitializationIpConfigArray {
	all := vm.VirtualMachineInitializationIpConfigArray{}
	for _, d := range n.Devices() {
		config := vm.VirtualMachineInitializationIpConfigArgs{}
		four, six := families(d.Network)
		switch {
		case four != "":
			config.Ipv4 = vm.VirtualMachineInitializationIpConfigIpv4Args{
				Address: pulumi.String(four), Gateway: pulumi.StringPtrFromPtr(d.Gateway),
			}
		case spec.Value(d.DHCP):
			config.Ipv4 = vm.VirtualMachineInitializationIpConfigIpv4Args{Address: pulumi.String("dhcp")}
		}
		if six != "" {
			config.Ipv6 = vm.VirtualMachineInitializationIpConfigIpv6Args{
				Address: pulumi.String(six), Gateway: pulumi.StringPtrFromPtr(d.Gateway6),
			}
		}
		all = append(all, config)
	}

	return all
}

// families returns the network's static addresses with prefix length, by IP family; empty when there is none.
func families(network spec.Network) (four, six string) {
	for _, prefix := range network.Prefixes() {
		if is4(prefix) {
			four = prefix.String()
		} else {
			six = prefix.String()
		}
	}

	return four, six
}

func is4(prefix netip.Prefix) bool { return prefix.Addr().Unmap().Is4() }
