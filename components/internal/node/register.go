// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"fmt"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/ha"
	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/hardware/mapping"
	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/vm"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/vmargs"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Register registers the VM, the mappings of devices passed through to it, the holder of the disks that
// outlive it, and its place in high availability.
func Register(ctx *pulumi.Context, a Args) (*vm.VirtualMachine, error) {
	mapped, err := mapDevices(ctx, a)
	if err != nil {
		return nil, err
	}
	holder, kept, err := registerHolder(ctx, a)
	if err != nil {
		return nil, err
	}
	hooks, err := a.hooks(ctx)
	if err != nil {
		return nil, err
	}

	before := append([]pulumi.Resource{a.Record.Resource}, a.DependsOn...)
	if holder != nil {
		before = append(before, holder)
	}
	opts := append(a.protected(), pulumi.DependsOn(before), pulumi.ResourceHooks(hooks),
		pulumi.IgnoreChanges(vmargs.Ignored(a.Node, a.Lifecycle.AllowReplace[a.Node.Node.Name])),
		// Always given: only a trigger that changes replaces, not one that appears.
		pulumi.ReplacementTrigger(pulumi.Int(a.Lifecycle.Replace[a.Node.Node.Name])))
	args := vmargs.VM(a.Node, vmargs.Disks(a.Node, kept), vmargs.Passthrough(a.Node, mapped))
	args.NodeName = a.host()
	made, err := vm.NewVirtualMachine(ctx, a.Name+"-vm", args, opts...)
	if err != nil {
		return nil, err
	}
	if settings := vmargs.HA(a.Node, made.VmId); settings != nil {
		_, err = ha.NewHAResource(ctx, a.Name+"-ha", settings, pulumi.Parent(a.Parent),
			pulumi.ReplaceOnChanges([]string{"resourceId"}), pulumi.DeleteBeforeReplace(true))
		if err != nil {
			return nil, fmt.Errorf("registering high availability: %w", err)
		}
	}

	return made, nil
}

// protected returns the options of every VM of the node. The id stays the same, so the old VM must go before
// a new one is made.
func (a Args) protected() []pulumi.ResourceOption {
	opts := []pulumi.ResourceOption{pulumi.Parent(a.Parent), pulumi.DeleteBeforeReplace(true)}
	if spec.Value(a.Cluster.Protect) {
		opts = append(opts, pulumi.Protect(true))
	}

	return opts
}

// host returns the host of the node's VMs, once the record permits what this run does to them.
func (a Args) host() pulumi.StringOutput { return a.Record.HostOf(a.Node.Node.Name, *a.Node.Node.Host) }

// mapDevices registers a mapping for each PCI device that has one of its own, and returns their names by
// address.
func mapDevices(ctx *pulumi.Context, a Args) (map[string]pulumi.StringInput, error) {
	names := map[string]pulumi.StringInput{}
	for _, m := range vmargs.PCIMappings(a.Node) {
		// Its name is its id, which the provider cannot change.
		made, err := mapping.NewPci(ctx, a.Name+"-pci-"+m.Address, m.Args,
			pulumi.Parent(a.Parent), pulumi.ReplaceOnChanges([]string{"name"}))
		if err != nil {
			return nil, fmt.Errorf("mapping PCI device %s: %w", m.Address, err)
		}
		names[m.Address] = made.Name
	}

	return names, nil
}

// registerHolder registers the VM that owns the disks which outlive the node's VM, and returns the paths of
// those disks by name; nil when none is kept.
func registerHolder(ctx *pulumi.Context, a Args) (pulumi.Resource, map[string]pulumi.StringPtrInput, error) {
	args, names, ignored := vmargs.Holder(a.Node)
	if args == nil {
		return nil, nil, nil
	}
	opts := append(a.protected(), pulumi.DependsOn([]pulumi.Resource{a.Record.Resource}), pulumi.IgnoreChanges(ignored))
	args.NodeName = a.host()
	holder, err := vm.NewVirtualMachine(ctx, a.Name+"-data", args, opts...)
	if err != nil {
		return nil, nil, fmt.Errorf("registering the holder of the data disks: %w", err)
	}
	paths := map[string]pulumi.StringPtrInput{}
	for at, name := range names {
		paths[name] = holder.Disks.Index(pulumi.Int(at)).PathInDatastore()
	}

	return holder, paths, nil
}
