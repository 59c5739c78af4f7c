// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package policy

import (
	"errors"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/vm"
)

// remembered returns what the state remembers of two control planes and a worker.
func remembered(change func(map[string]any)) Resource {
	machine := func(role, host string, id int) map[string]any {
		return map[string]any{"hostname": "n", "vm": map[string]any{"role": role, "host": host, "vmId": id, "rebuild": 0}}
	}
	all := map[string]any{
		"cp-1": machine("controlplane", "pve1", 1), "cp-2": machine("controlplane", "pve2", 2), "work-1": machine("worker", "pve1", 3),
	}
	if change != nil {
		change(all)
	}

	return Resource{
		URN: "urn:machines", Type: stashType, Name: "prod-machines",
		Inputs: resource.NewPropertyMapFromMap(map[string]any{"input": all}),
	}
}

func set(all map[string]any, node, key string, value any) {
	all[node].(map[string]any)["vm"].(map[string]any)[key] = value
}

// stateOf returns a state in which a resource remembers machines.
func stateOf(r Resource) func() (map[string]Machines, error) {
	machines, _ := machinesOf(r)

	return func() (map[string]Machines, error) { return map[string]Machines{r.URN: machines}, nil }
}

// against returns what the policy of that name has against a resource.
func against(t *testing.T, p Pack, name string, r Resource) []string {
	t.Helper()
	for _, policy := range Policies() {
		if policy.Name == name {
			return p.Check(policy, r)
		}
	}
	require.Fail(t, "there is no policy "+name)

	return nil
}

func TestReplacedMachines(t *testing.T) {
	t.Parallel()
	p := Pack{Before: stateOf(remembered(nil))}
	assert.Empty(t, against(t, p, "vm-not-replaced", remembered(nil)))
	assert.Empty(t, against(t, p, "vm-not-replaced", remembered(func(all map[string]any) { delete(all, "work-1") })), "one that goes")
	assert.Empty(t, against(t, p, "vm-not-replaced", remembered(func(all map[string]any) {
		set(all, "cp-1", "host", "pve3")
		set(all, "cp-1", "migrate", true)
	})), "one that moves live")
	assert.Equal(t, []string{"the VM of node cp-1 would be replaced (lifecycle.replace: 0 => 1)", "the VM of node work-1 would be replaced (vmId: 3 => 9)"},
		against(t, p, "vm-not-replaced", remembered(func(all map[string]any) {
			set(all, "cp-1", "rebuild", 1)
			set(all, "work-1", "vmId", 9)
		})))

	p.Before = func() (map[string]Machines, error) { return nil, errors.New("no passphrase") }
	assert.Equal(t, []string{"whether a VM would be replaced is not known, since the state cannot be read: no passphrase"},
		against(t, p, "vm-not-replaced", remembered(nil)))
}

func TestControlPlanesOnOneHost(t *testing.T) {
	t.Parallel()
	assert.Empty(t, against(t, Pack{}, "control-planes-apart", remembered(nil)))
	assert.Equal(t, []string{"control planes cp-1, cp-2 share host pve1: name another host for one of them"},
		against(t, Pack{}, "control-planes-apart", remembered(func(all map[string]any) { set(all, "cp-2", "host", "pve1") })))
}

func TestPlainCredentials(t *testing.T) {
	t.Parallel()
	key := resource.NewProperty("-----BEGIN OPENSSH PRIVATE KEY-----\nx\n-----END OPENSSH PRIVATE KEY-----")
	r := Resource{Type: "any:index:Thing", Name: "thing", Inputs: resource.PropertyMap{
		"secret": resource.MakeSecret(key), "unknown": resource.MakeComputed(resource.NewProperty("")),
		"known": resource.NewProperty(resource.Output{Element: key, Known: true, Secret: true}), "name": resource.NewProperty("web"),
	}}
	assert.Empty(t, against(t, Pack{}, "secrets-encrypted", r))
	r.Inputs["list"] = resource.NewProperty([]resource.PropertyValue{resource.NewProperty(resource.PropertyMap{"key": key})})
	assert.Equal(t, []string{`"thing": input list[0].key holds a private key in plain text: give it as a secret`},
		against(t, Pack{}, "secrets-encrypted", r))
}

func TestBackups(t *testing.T) {
	t.Parallel()
	disk := func(at string, backup bool) resource.PropertyValue {
		return resource.NewProperty(resource.PropertyMap{"interface": resource.NewProperty(at), "backup": resource.NewProperty(backup)})
	}
	machine := Resource{Type: vmType, Name: "prod-cp-1-vm", Inputs: resource.PropertyMap{
		"disks": resource.NewProperty([]resource.PropertyValue{disk("scsi0", true), disk("scsi1", false)}),
	}}
	assert.Equal(t, []string{`disk scsi1 of VM "prod-cp-1-vm" is left out of Proxmox VE's backups (backup: false)`},
		against(t, Pack{}, "nodes-backed-up", machine))

	none := []string{`cluster "prod" has no scheduled backup of etcd: set kubernetes.etcd.backup`}
	manifests := func(input resource.PropertyValue) Resource {
		return Resource{Type: stashType, Name: "prod-manifests", Inputs: resource.PropertyMap{"input": input}}
	}
	objects := func(id resource.PropertyKey) resource.PropertyValue {
		return resource.NewProperty(resource.PropertyMap{id: resource.NewProperty("digest")})
	}
	unknown := resource.MakeComputed(resource.NewProperty(""))
	assert.Equal(t, none, against(t, Pack{}, "nodes-backed-up", manifests(objects("v1/Namespace//one"))))
	assert.Empty(t, against(t, Pack{}, "nodes-backed-up", manifests(objects("batch/v1/CronJob/backups/talos-backup"))))
	assert.Empty(t, against(t, Pack{}, "nodes-backed-up", manifests(unknown)), "a program without settings is judged at up")
	config := map[string]string{"mine:nodes": "{}", "mine:kubernetes": `{"version":"v1.35.0"}`}
	assert.Equal(t, none, against(t, Pack{Config: config}, "nodes-backed-up", manifests(unknown)))
	config["mine:kubernetes"] = `{"etcd":{"backup":{"schedule":"0 0 * * *"}}}`
	assert.Empty(t, against(t, Pack{Config: config}, "nodes-backed-up", manifests(unknown)))
}

func TestMachinesInAnExportedState(t *testing.T) {
	t.Parallel()
	found, err := parseState([]byte(`{"version":3,"deployment":{"resources":[
		{"urn":"urn:1","type":"pulumi:index:Stash","inputs":{"input":{"cp-1":{"hostname":"cp-1","vm":{"role":"controlplane","host":"pve1"}}}}},
		{"urn":"urn:2","type":"pulumi:index:Stash","inputs":{"input":"v1.12.4"}},
		{"urn":"urn:3","type":"pulumi:index:Stash","inputs":{"input":{"kubernetes":{"version":1}}}},
		{"urn":"urn:4","type":"pulumi:pulumi:Stack"}]}}`))
	require.NoError(t, err)
	assert.Equal(t, map[string]Machines{"urn:1": {"cp-1": {Hostname: "cp-1", VM: vm.Identity{Role: "controlplane", Host: "pve1"}}}}, found)
	_, err = parseState([]byte("not JSON"))
	require.Error(t, err)
}
