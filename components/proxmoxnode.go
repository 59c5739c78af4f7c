// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"fmt"
	"sync/atomic"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/vm"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules"
	nodevm "github.com/talos-proxmox/talos-proxmox/internal/vm"
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
	// ImageFileID is the boot file on the node's host, as [TalosImage.FileID] gives it.
	ImageFileID pulumi.StringInput
	// Proxmox gives the hosts' datastores, and says who asks: some options need root@pam or SSH.
	Proxmox spec.Proxmox
	// Lifecycle says which edits may replace the VM (AllowReplace), and rebuilds it on request
	// (Replace).
	Lifecycle spec.Lifecycle
	// After must exist or be up to date before the VM is touched.
	After []pulumi.Resource
	// Hooks run around the VM's own steps; the gate for edits that reboot is bound here.
	Hooks *pulumi.ResourceHookBinding
}

// ProxmoxNode is the virtual machine of a node with what belongs to it on Proxmox VE: mappings of the
// PCI devices passed through, its place in high availability, and the holder of the disks that
// outlive it. An edit that would replace the VM or lose data is refused at preview.
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

	// VM is the virtual machine itself.
	VM *vm.VirtualMachine
}

// NewProxmoxNode registers the node's VM under name.
func NewProxmoxNode(
	ctx *pulumi.Context, name string, args *ProxmoxNodeArgs, opts ...pulumi.ResourceOption,
) (*ProxmoxNode, error) {
	a := args.withDefaults()
	if err := a.validate().Err(fmt.Sprintf("node %q", a.Node.Name)); err != nil {
		return nil, err
	}

	n := &ProxmoxNode{}
	if err := ctx.RegisterComponentResource(ProxmoxNodeType, name, n, opts...); err != nil {
		return nil, fmt.Errorf("registering node %q: %w", a.Node.Name, err)
	}
	b := &nodeBuilder{ctx: ctx, name: name, args: a, node: n}
	if err := b.build(); err != nil {
		return nil, fmt.Errorf("registering the VM of node %q: %w", a.Node.Name, err)
	}

	address := ""
	if a.Node.Address().IsValid() {
		address = a.Node.Address().String()
	}
	n.Name = pulumi.String(a.Node.Name).ToStringOutput()
	n.Host = pulumi.String(*a.Node.Host).ToStringOutput()
	n.Address = pulumi.String(address).ToStringOutput()
	n.VMID = n.VM.VmId

	return n, ctx.RegisterResourceOutputs(n, pulumi.Map{
		"name": n.Name, "host": n.Host, "address": n.Address, "vmId": n.VMID,
	})
}

// nodeBuilder registers the children of one node.
type nodeBuilder struct {
	ctx  *pulumi.Context
	name string
	args ProxmoxNodeArgs
	node *ProxmoxNode
	// isNew says that the node is created in this run.
	isNew atomic.Bool
}

func (b *nodeBuilder) build() error {
	guard, err := b.guard()
	if err != nil {
		return err
	}
	devices, err := b.passthrough()
	if err != nil {
		return err
	}
	disks, holder, err := b.disks(guard)
	if err != nil {
		return err
	}

	before := append([]pulumi.Resource{guard}, b.args.After...)
	if holder != nil {
		before = append(before, holder)
	}
	hooks, err := b.hooks()
	if err != nil {
		return err
	}
	machine, err := vm.NewVirtualMachine(b.ctx, b.name+"-vm", b.machine(disks, devices),
		append(b.options(before), pulumi.ResourceHooks(hooks))...)
	if err != nil {
		return err
	}
	b.node.VM = machine

	return b.highAvailability(machine)
}

// options of the VM's resource: what must never replace it, and what may.
func (b *nodeBuilder) options(before []pulumi.Resource) []pulumi.ResourceOption {
	a := b.args
	ignored := ignoredDisks(a.Node)
	if nodevm.ARM(a.Image) {
		// There is no CD drive, which the provider would add, in a way that Proxmox VE refuses.
		ignored = append(ignored, "cdrom")
	}
	if a.Node.HA != nil {
		// High availability moves, starts and stops the VM by itself.
		ignored = append(ignored, "nodeName", "started")
	}
	opts := []pulumi.ResourceOption{
		pulumi.Parent(b.node),
		pulumi.DependsOn(before),
		pulumi.IgnoreChanges(ignored),
		// The id is the same, so the old VM must go first.
		pulumi.DeleteBeforeReplace(true),
		// Always said: only a trigger that changes replaces, not one that appears.
		pulumi.ReplacementTrigger(pulumi.Int(a.Lifecycle.Replace[a.Node.Name])),
	}
	if spec.Or(a.Cluster.Protect, false) {
		opts = append(opts, pulumi.Protect(true))
	}

	return opts
}

// allowed are the fields whose edits may replace the VM.
func (a ProxmoxNodeArgs) allowed() []string { return a.Lifecycle.AllowReplace[a.Node.Name] }

// withDefaults returns a copy in which node, image and cluster are complete.
func (a ProxmoxNodeArgs) withDefaults() ProxmoxNodeArgs {
	full := a.config().WithDefaults()
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
	rules.CheckNodes(a.config(), &l)

	return &l
}

// config is the node with what it needs to be complete.
func (a ProxmoxNodeArgs) config() spec.Config {
	return spec.Config{
		Proxmox: withEnvironment(a.Proxmox), Cluster: a.Cluster, Lifecycle: a.Lifecycle,
		Images: map[string]spec.Image{spec.Or(a.Node.Node.Image, spec.DefaultImage): a.Image},
		Nodes:  []spec.NamedNode{a.Node},
	}
}
