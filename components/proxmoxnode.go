// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/vm"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/components/internal/node"
	"github.com/talos-proxmox/talos-proxmox/components/internal/stash"
	"github.com/talos-proxmox/talos-proxmox/components/internal/vmargs"
	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// ProxmoxNodeType is the token of [ProxmoxNode]. Changing it replaces every VM.
const ProxmoxNodeType = "talos-proxmox:components:ProxmoxNode"

// ProxmoxNodeArgs describe the VM of one node.
type ProxmoxNodeArgs struct {
	// Cluster gives the name, tags, name servers, protection and VM id base that nodes share.
	Cluster spec.Cluster
	// Node is the node; what it leaves out has the defaults of [spec.Config.WithDefaults].
	Node spec.NamedNode
	// Image is the variant that the node boots.
	Image spec.Image
	// ImageFileID is the boot file on the node's host, as [TalosImage.FileID] returns it.
	ImageFileID pulumi.StringInput `pulumi:"imageFileId"`
	// Proxmox gives the hosts' datastores, and who asks: some options need root@pam or SSH.
	Proxmox spec.Proxmox
	// ProxmoxAPIToken and ProxmoxPassword are credentials that other resources produce, in place of those in
	// Proxmox.
	ProxmoxAPIToken pulumi.StringInput `pulumi:"proxmoxApiToken"`
	ProxmoxPassword pulumi.StringInput `pulumi:"proxmoxPassword"`
	// Lifecycle says which edits may replace the VM (AllowReplace), and rebuilds it on request (Replace).
	Lifecycle spec.Lifecycle

	// record remembers the VMs of a whole cluster; nil for a node of its own.
	record *node.Record
	// serves reports whether a living node of the cluster answers at an address; nil for a node of its own.
	serves func(ctx context.Context, address string) bool
}

// ProxmoxNode registers the virtual machine of a node with what belongs to it on Proxmox VE: mappings of the PCI
// devices passed through, its place in high availability, and the holder of the disks that outlive it. An
// edit that would replace the VM or lose data is refused at preview.
type ProxmoxNode struct {
	pulumi.ResourceState

	// Name of the node.
	Name pulumi.StringOutput `pulumi:"name"`
	// Host that runs the VM.
	Host pulumi.StringOutput `pulumi:"host"`
	// Address at which the node is reached; empty when it has no static one.
	Address pulumi.StringOutput `pulumi:"address"`
	// VMID is the VM's id.
	VMID pulumi.IntOutput `pulumi:"vmId"`

	// MachineID changes when the VM is recreated, also after it was lost, and at no other time.
	MachineID pulumi.StringOutput `pulumi:"machineId"`

	// VM is the virtual machine itself.
	VM *vm.VirtualMachine
}

// NewProxmoxNode registers the node's VM under name. What the options say with [pulumi.DependsOn] comes before
// the VM; hooks of [pulumi.ResourceHooks] run around the VM's steps: give those of [TalosSecrets.VMHooks] to a
// node of a cluster.
func NewProxmoxNode(
	ctx *pulumi.Context, name string, args *ProxmoxNodeArgs, opts ...pulumi.ResourceOption,
) (*ProxmoxNode, error) {
	if args == nil {
		return nil, errNoArgs("node", name)
	}
	a := args.withDefaults()
	if err := a.validate().Err(fmt.Sprintf("node %q", a.Node.Name)); err != nil {
		return nil, err
	}
	own, given, err := childOptions(opts)
	if err != nil {
		return nil, fmt.Errorf("node %q: %w", a.Node.Name, err)
	}

	n := &ProxmoxNode{}
	if err := ctx.RegisterComponentResource(ProxmoxNodeType, name, n, own...); err != nil {
		return nil, fmt.Errorf("registering node %q: %w", a.Node.Name, err)
	}
	if n.VM, err = a.register(ctx, name, n, given); err != nil {
		return nil, fmt.Errorf("registering the VM of node %q: %w", a.Node.Name, err)
	}

	address := ""
	if a.Node.Address().IsValid() {
		address = a.Node.Address().String()
	}
	n.Name = pulumi.String(a.Node.Name).ToStringOutput()
	n.Host = pulumi.String(*a.Node.Host).ToStringOutput()
	n.Address = pulumi.String(address).ToStringOutput()
	n.VMID, n.MachineID = n.VM.VmId, vmargs.MachineID(n.VM)

	return n, ctx.RegisterResourceOutputs(n, pulumi.Map{
		"name": n.Name, "host": n.Host, "address": n.Address, "vmId": n.VMID, "machineId": n.MachineID,
	})
}

// register registers the VM and what belongs to it.
func (a ProxmoxNodeArgs) register(
	ctx *pulumi.Context, name string, parent pulumi.Resource, given *pulumi.ResourceOptions,
) (*vm.VirtualMachine, error) {
	settings := vmargs.Node{Cluster: a.Cluster, Node: a.Node, Image: a.Image, BootFile: a.ImageFileID}
	record := a.record
	if record == nil {
		var err error
		machines := node.Machines{a.Node.Name: node.MachineOf(settings, a.Lifecycle)}
		record, err = node.Remember(ctx, name+"-machine", machines, a.Lifecycle.AllowReplace,
			stash.On[node.Machines]{}, pulumi.Parent(parent))
		if err != nil {
			return nil, err
		}
	}

	return node.Register(ctx, node.Args{
		Node: settings, Parent: parent, Name: name, Record: record, Lifecycle: a.Lifecycle,
		API:       proxmoxAPI(a.Proxmox, a.ProxmoxAPIToken, a.ProxmoxPassword),
		DependsOn: given.DependsOn, Hooks: given.Hooks, Serves: a.serves,
	})
}

// proxmoxAPI returns how Proxmox VE is reached besides by its provider.
func proxmoxAPI(settings spec.Proxmox, token, password pulumi.StringInput) node.API {
	api := node.API{Settings: settings}
	if token != nil {
		api.Token = hook.FutureOf("the API token of Proxmox VE", token)
	}
	if password != nil {
		api.Password = hook.FutureOf("the password of Proxmox VE", password)
	}

	return api
}

// withDefaults returns a copy in which node, image and cluster are complete.
func (a ProxmoxNodeArgs) withDefaults() ProxmoxNodeArgs {
	full := a.config(a.Proxmox).WithDefaults()
	a.Proxmox, a.Cluster, a.Lifecycle = full.Proxmox, full.Cluster, full.Lifecycle
	a.Node = full.Nodes[0]
	a.Image = full.Image(a.Node)

	return a
}

func (a ProxmoxNodeArgs) validate() *check.List {
	var l check.List
	if a.ImageFileID == nil {
		l.Addf("imageFileId", "is required: the boot file on the node's host")
	}
	asked := withInputs(a.Proxmox, proxmoxInputs{token: a.ProxmoxAPIToken, password: a.ProxmoxPassword})
	rules.CheckNodes(a.config(rules.WithEnvironment(asked, os.Getenv)), &l)

	return &l
}

// config returns the node with what it needs to be complete.
func (a ProxmoxNodeArgs) config(proxmox spec.Proxmox) spec.Config {
	return spec.Config{
		Proxmox: proxmox, Cluster: a.Cluster, Lifecycle: a.Lifecycle,
		Images: map[string]spec.Image{cmp.Or(spec.Value(a.Node.Node.Image), spec.DefaultImage): a.Image},
		Nodes:  []spec.NamedNode{a.Node},
	}
}
