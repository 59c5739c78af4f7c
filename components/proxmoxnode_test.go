// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/components"
	"github.com/talos-proxmox/talos-proxmox/internal/pulumitest"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

const fileID = "local:iso/talos.iso"

// devNode returns a control plane of the dev stack.
func devNode() components.ProxmoxNodeArgs {
	return components.ProxmoxNodeArgs{
		Cluster: spec.Cluster{Name: spec.Ptr("talos-dev"), Nameservers: []string{"10.200.0.1"}},
		Proxmox: spec.Proxmox{Hosts: map[string]spec.Host{"ryzen-proxmox": {Datastore: spec.Ptr("local-lvm")}}},
		Image:   spec.Image{Extensions: []string{"siderolabs/qemu-guest-agent"}},
		Node: spec.NamedNode{Name: "ctrl-00", Node: spec.Node{
			Role: spec.Ptr(spec.ControlPlane), Host: spec.Ptr("ryzen-proxmox"), VMID: spec.Ptr(800),
			VM: spec.VM{
				CPU: spec.Ptr(2), CPUType: spec.Ptr("host"), Memory: spec.Ptr(spec.MiB(2048)),
				Tags: []string{"k8s", "control-plane"},
			},
			OSDisk: &spec.Disk{Size: spec.Ptr(spec.GiB(10)), Cache: spec.Ptr("writethrough")},
			Networks: map[string]spec.Network{"vmbr200": {
				Address: spec.Ptr("10.200.5.1/16"), Gateway: spec.Ptr("10.200.0.1"), MAC: spec.Ptr("bc:24:11:00:08:00"),
			}},
		}},
		ImageFileID: pulumi.String(fileID),
	}
}

// prodWorker returns a worker of the prod stack: two networks, a data disk, three hosts.
func prodWorker() components.ProxmoxNodeArgs {
	args := devNode()
	args.Cluster = spec.Cluster{Name: spec.Ptr("prod-k8s")}
	args.Proxmox.Hosts = map[string]spec.Host{"alpha": {}, "charlie": {}}
	args.Image.DatastoreHost, args.Image.Datastore = spec.Ptr("alpha"), spec.Ptr("nas")
	args.Node = spec.NamedNode{Name: "prod-work-01", Node: spec.Node{
		Role: spec.Ptr(spec.Worker), Host: spec.Ptr("charlie"), VMID: spec.Ptr(6201),
		VM:     spec.VM{CPU: spec.Ptr(10), Memory: spec.Ptr(spec.MiB(49152))},
		OSDisk: &spec.Disk{Size: spec.Ptr(spec.GiB(128))},
		Disks:  map[string]spec.Disk{"longhorn": {Size: spec.Ptr(spec.GiB(512)), UnitNumber: spec.Ptr(1)}},
		Networks: map[string]spec.Network{
			"dmz":   {Index: spec.Ptr(0), Address: spec.Ptr("192.168.62.24/24"), Gateway: spec.Ptr("192.168.62.1")},
			"vmbr1": {Index: spec.Ptr(1), Address: spec.Ptr("192.168.192.24/24"), VLAN: spec.Ptr(7)},
		},
	}}

	return args
}

// register runs the component alone.
func register(t *testing.T, preview bool, args components.ProxmoxNodeArgs) *pulumitest.Recorder {
	t.Helper()
	r := pulumitest.Recorder{State: withVolumes}
	require.NoError(t, r.Run(preview, func(ctx *pulumi.Context) error {
		_, err := components.NewProxmoxNode(ctx, args.Node.Name, &args)

		return err
	}))

	return &r
}

// withVolumes makes of a resource's inputs what Proxmox would: every disk has a volume.
func withVolumes(args pulumi.MockResourceArgs) (string, resource.PropertyMap) {
	outputs := args.Inputs.Copy()
	if disks, ok := outputs["disks"]; ok {
		var named []resource.PropertyValue
		for _, disk := range disks.ArrayValue() {
			volume := disk.ObjectValue().Copy()
			if _, there := volume["pathInDatastore"]; !there {
				volume["pathInDatastore"] = resource.NewProperty("vm-" + args.Name + "-" + volume["interface"].StringValue())
			}
			named = append(named, resource.NewProperty(volume))
		}
		outputs["disks"] = resource.NewProperty(named)
	}

	return args.Name, outputs
}

// plain returns a resource's inputs as plain values.
func plain(t *testing.T, r *pulumitest.Recorder, name string) map[string]any {
	t.Helper()
	args, ok := r.Get(name)
	require.Truef(t, ok, "%s was not registered, but %v", name, r.Names(""))

	inputs := args.Inputs.Mappable()
	delete(inputs, "smbios") // another one with each run

	return inputs
}

// update rewrites golden files, and fails, so that nobody leaves it on.
var update = flag.Bool("update", false, "rewrite golden files")

// golden holds a value against testdata/<name>.json.
func golden(t *testing.T, name string, value any) {
	t.Helper()
	text, err := json.MarshalIndent(value, "", "  ")
	require.NoError(t, err)
	path := filepath.Join("testdata", name+".json")
	if *update {
		require.NoError(t, os.WriteFile(path, append(text, '\n'), 0o600))
		t.Fatalf("%s was rewritten", path)
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.JSONEq(t, string(want), string(text))
}

// TestNodeIsACompleteVM holds the inputs of whole VMs, at preview and at up.
func TestNodeIsACompleteVM(t *testing.T) {
	t.Parallel()

	cases := map[string]components.ProxmoxNodeArgs{
		"node-dev": devNode(), "node-prod": prodWorker(), "node-everything": everything(),
	}
	for name, args := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := register(t, false, args)
			preview := register(t, true, args)
			assert.Equal(t, up.Names(""), preview.Names(""), "a preview shows every resource")

			resources := map[string]any{}
			for _, resource := range up.Names("") {
				if resource != args.Node.Name {
					resources[resource] = plain(t, up, resource)
				}
			}
			golden(t, name, resources)
		})
	}
}

func TestNodeOptions(t *testing.T) {
	t.Parallel()

	args := devNode()
	args.Cluster.Protect = spec.Ptr(true)
	args.Lifecycle.Replace = map[string]int{"ctrl-00": 2}
	r := register(t, false, args)

	component := r.Register("ctrl-00")
	assert.Equal(t, components.ProxmoxNodeType, component.GetType())
	vm := r.Register("ctrl-00-vm")
	assert.Equal(t, "proxmoxve:VM/virtualMachine:VirtualMachine", vm.GetType())
	assert.Contains(t, vm.GetParent(), components.ProxmoxNodeType+"::ctrl-00")
	assert.Equal(t, []string{"disks[0].fileId", "efiDisk", "smbios", "template", "tpmState", "disks[0].speed"}, vm.GetIgnoreChanges(),
		"nothing that the provider replaces a VM for is taken from what somebody did by hand")
	assert.True(t, vm.GetDeleteBeforeReplace(), "the VM id is taken as long as the old VM is there")
	assert.True(t, vm.GetProtect())
	assert.InEpsilon(t, 2.0, vm.GetReplacementTrigger().GetNumberValue(), 0)
	require.Len(t, vm.GetDependencies(), 1)
	assert.Contains(t, vm.GetDependencies()[0], "pulumi:index:Stash::ctrl-00-machine")

	remembered := r.Register("ctrl-00-machine")
	const hook = "pulumi:index:Stash::ctrl-00-machine::"
	assert.Equal(t, []string{hook + "plan", hook + "update"}, remembered.GetHooks().GetBeforeUpdate())
	assert.False(t, remembered.GetProtect())
}

func TestNodeTakesHooksAndOrder(t *testing.T) {
	t.Parallel()

	var r pulumitest.Recorder
	require.NoError(t, r.Run(false, func(ctx *pulumi.Context) error {
		before, err := ctx.RegisterResourceHook("gate-enter", func(*pulumi.ResourceHookArgs) error { return nil }, nil)
		require.NoError(t, err)
		first, err := pulumi.NewStash(ctx, "first", &pulumi.StashArgs{Input: pulumi.String("x")})
		require.NoError(t, err)
		args := devNode()
		node, err := components.NewProxmoxNode(ctx, "ctrl-00", &args, pulumi.DependsOn([]pulumi.Resource{first}),
			pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeUpdate: []*pulumi.ResourceHook{before}}))
		require.NoError(t, err)
		assert.NotNil(t, node.VM)

		return nil
	}))

	vm := r.Register("ctrl-00-vm")
	assert.Equal(t, []string{"node::ctrl-00::added-disks", "node::ctrl-00::started", "gate-enter"}, vm.GetHooks().GetBeforeUpdate(),
		"a VM that the provider would fail at takes no turn")
	assert.Len(t, vm.GetDependencies(), 2)
	assert.Nil(t, r.Register("ctrl-00").GetHooks(), "the hooks are the VM's, not the component's")
}

// TestLostVMIsAnotherMachine holds that a VM which is created anew has another id, and one that is edited keeps it:
// its configuration is applied again when the id changes.
func TestLostVMIsAnotherMachine(t *testing.T) {
	t.Parallel()
	id := func() string {
		r := register(t, false, devNode())
		vm, _ := r.Get("ctrl-00-vm")

		return vm.Inputs["smbios"].ObjectValue()["uuid"].StringValue()
	}
	assert.NotEqual(t, id(), id(), "each creation has one of its own")
	assert.Contains(t, register(t, false, devNode()).Register("ctrl-00-vm").GetIgnoreChanges(), "smbios", "an edit keeps the first")
}
