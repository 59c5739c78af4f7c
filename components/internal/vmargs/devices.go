// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package vmargs

import (
	"fmt"
	"strconv"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/ha"
	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/hardware/mapping"
	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/vm"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// HostDevices lists the host's devices that the VM gets.
type HostDevices struct {
	PCI vm.VirtualMachineHostpciArrayInput
	USB vm.VirtualMachineUsbArrayInput
}

// PCIMapping describes a device that is passed through by a mapping of its own, which lets an API token do so. Each
// device has its own mapping: the devices of one mapping are alternatives.
type PCIMapping struct {
	Address string
	Args    *mapping.PciArgs
}

// PCIMappings returns the mappings to make for the node.
func PCIMappings(node Node) []PCIMapping {
	n := node.Node
	if n.GPU == nil {
		return nil
	}
	var all []PCIMapping
	for place, address := range n.GPU.Devices {
		identity, ok := n.GPU.Identities[address]
		if !ok {
			continue
		}
		all = append(all, PCIMapping{Address: address, Args: &mapping.PciArgs{
			Name:            pulumi.String(fmt.Sprintf("%s-%s-pci%d", *node.Cluster.Name, n.Name, place)),
			Comment:         pulumi.String(fmt.Sprintf("%s of node %s", address, n.Name)),
			MediatedDevices: pulumi.Bool(n.GPU.MDev != nil),
			Maps: mapping.PciMapTypeArray{mapping.PciMapTypeArgs{
				Node:        pulumi.String(*n.Host),
				Path:        pulumi.String(address),
				Id:          pulumi.String(identity.ID),
				SubsystemId: pulumi.StringPtrFromPtr(identity.SubsystemID),
				IommuGroup:  pulumi.IntPtrFromPtr(identity.IOMMUGroup),
			}},
		}})
	}

	return all
}

// Passthrough returns the host's devices for the VM; mapped has the names of mappings by PCI address.
func Passthrough(node Node, mapped map[string]pulumi.StringInput) HostDevices {
	var d HostDevices
	n := node.Node
	var pci vm.VirtualMachineHostpciArray
	if gpu := n.GPU; gpu != nil {
		if gpu.Mapping != nil {
			pci = append(pci, hostPCI(*gpu, 0, vm.VirtualMachineHostpciArgs{Mapping: pulumi.String(*gpu.Mapping)}))
		}
		for i, address := range gpu.Devices {
			device := vm.VirtualMachineHostpciArgs{Id: pulumi.String(address)}
			if name, ok := mapped[address]; ok {
				device = vm.VirtualMachineHostpciArgs{Mapping: name.ToStringOutput().ToStringPtrOutput()}
			}
			pci = append(pci, hostPCI(*gpu, i, device))
		}
	}
	if pci != nil {
		d.PCI = pci
	}

	var usb vm.VirtualMachineUsbArray
	for _, device := range n.USB {
		usb = append(usb, vm.VirtualMachineUsbArgs{
			Mapping: pulumi.StringPtrFromPtr(device.Mapping),
			Host:    pulumi.StringPtrFromPtr(device.Host),
			Usb3:    pulumi.Bool(*device.USB3),
		})
	}
	if usb != nil {
		d.USB = usb
	}

	return d
}

// hostPCI completes the arguments of the place-th device. Only the first can be the primary display.
func hostPCI(gpu spec.GPU, place int, device vm.VirtualMachineHostpciArgs) vm.VirtualMachineHostpciArgs {
	device.Device = pulumi.String("hostpci" + strconv.Itoa(place))
	device.Pcie = pulumi.Bool(*gpu.PCIe)
	device.Rombar = pulumi.Bool(*gpu.ROMBar)
	device.Xvga = pulumi.Bool(*gpu.XVGA && place == 0)
	device.Mdev = pulumi.StringPtrFromPtr(gpu.MDev)
	if place == 0 {
		device.RomFile = pulumi.StringPtrFromPtr(gpu.ROMFile)
	}

	return device
}

// HA returns the VM's place in high availability; nil when it has none.
func HA(node Node, id pulumi.IntOutput) *ha.HAResourceArgs {
	settings := node.Node.HA
	if settings == nil {
		return nil
	}

	return &ha.HAResourceArgs{
		ResourceId:  pulumi.Sprintf("vm:%d", id),
		Type:        pulumi.String("vm"),
		State:       pulumi.String(*settings.State),
		Group:       pulumi.StringPtrFromPtr(settings.Group),
		MaxRestart:  pulumi.IntPtrFromPtr(settings.MaxRestart),
		MaxRelocate: pulumi.IntPtrFromPtr(settings.MaxRelocate),
		Comment:     pulumi.StringPtrFromPtr(settings.Comment),
	}
}
