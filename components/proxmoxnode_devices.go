// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"fmt"
	"strconv"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/ha"
	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/hardware/mapping"
	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/vm"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// passthrough are the host's devices that the VM gets.
type passthrough struct {
	pci vm.VirtualMachineHostpciArrayInput
	usb vm.VirtualMachineUsbArrayInput
}

func (b *nodeBuilder) passthrough() (passthrough, error) {
	var p passthrough
	n := b.args.Node
	var pci vm.VirtualMachineHostpciArray
	if gpu := n.GPU; gpu != nil {
		if gpu.Mapping != nil {
			pci = append(pci, hostPCI(*gpu, 0, vm.VirtualMachineHostpciArgs{Mapping: pulumi.String(*gpu.Mapping)}))
		}
		for i, address := range gpu.Devices {
			device := vm.VirtualMachineHostpciArgs{Id: pulumi.String(address)}
			if identity, ok := gpu.Identities[address]; ok {
				mapped, err := b.pciMapping(i, address, identity)
				if err != nil {
					return p, err
				}
				device = vm.VirtualMachineHostpciArgs{Mapping: mapped.Name}
			}
			pci = append(pci, hostPCI(*gpu, i, device))
		}
	}
	if pci != nil {
		p.pci = pci
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
		p.usb = usb
	}

	return p, nil
}

// hostPCI completes the place-th device. Only the first can be the primary display.
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

// pciMapping lets an API token pass the device through. Each device has its own: the devices of one
// mapping are alternatives.
func (b *nodeBuilder) pciMapping(place int, address string, identity spec.PCIIdentity) (*mapping.Pci, error) {
	n := b.args.Node
	mapped, err := mapping.NewPci(b.ctx, fmt.Sprintf("%s-pci-%s", b.name, address), &mapping.PciArgs{
		Name:            pulumi.String(fmt.Sprintf("%s-%s-pci%d", *b.args.Cluster.Name, n.Name, place)),
		Comment:         pulumi.String(fmt.Sprintf("%s of node %s", address, n.Name)),
		MediatedDevices: pulumi.Bool(n.GPU.MDev != nil),
		Maps: mapping.PciMapTypeArray{mapping.PciMapTypeArgs{
			Node:        pulumi.String(*n.Host),
			Path:        pulumi.String(address),
			Id:          pulumi.String(identity.ID),
			SubsystemId: pulumi.StringPtrFromPtr(identity.SubsystemID),
			IommuGroup:  pulumi.IntPtrFromPtr(identity.IOMMUGroup),
		}},
		// Its name is its id, which the provider cannot change.
	}, pulumi.Parent(b.node), pulumi.ReplaceOnChanges([]string{"name"}))
	if err != nil {
		return nil, fmt.Errorf("mapping PCI device %s: %w", address, err)
	}

	return mapped, nil
}

// highAvailability puts the VM under Proxmox's care.
func (b *nodeBuilder) highAvailability(machine *vm.VirtualMachine) error {
	settings := b.args.Node.HA
	if settings == nil {
		return nil
	}
	_, err := ha.NewHAResource(b.ctx, b.name+"-ha", &ha.HAResourceArgs{
		ResourceId:  pulumi.Sprintf("vm:%d", machine.VmId),
		Type:        pulumi.String("vm"),
		State:       pulumi.String(*settings.State),
		Group:       pulumi.StringPtrFromPtr(settings.Group),
		MaxRestart:  pulumi.IntPtrFromPtr(settings.MaxRestart),
		MaxRelocate: pulumi.IntPtrFromPtr(settings.MaxRelocate),
		Comment:     pulumi.StringPtrFromPtr(settings.Comment),
	}, pulumi.Parent(b.node), pulumi.ReplaceOnChanges([]string{"resourceId"}), pulumi.DeleteBeforeReplace(true))
	if err != nil {
		return fmt.Errorf("registering high availability: %w", err)
	}

	return nil
}
