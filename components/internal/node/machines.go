// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package node registers the VM of a node with everything that belongs to it on Proxmox VE.
package node

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/components/internal/stash"
	"github.com/talos-proxmox/talos-proxmox/components/internal/vmargs"
	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/vm"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// MachineOf returns what to remember of a node's VM.
func MachineOf(n vmargs.Node, lifecycle spec.Lifecycle) vm.Machine {
	m := vm.Machine{
		Hostname: spec.Value(n.Node.Hostname),
		VM:       vm.IdentityOf(n.Node, n.Image, lifecycle.Replace[n.Node.Name]),
	}
	switch {
	case spec.Value(n.Node.Protection):
		m.Protected = "nodes." + n.Node.Name + ".protection"
	case spec.Value(n.Cluster.Protect):
		m.Protected = "cluster.protect"
	}

	return m
}

// Machines hold remembered VMs by node name.
type Machines map[string]vm.Machine

// Record remembers the VMs in the state. VMs depend on it: it is the only place that sees what was before,
// and it refuses, in the preview already, an edit that would replace a VM or lose data.
type Record struct {
	// Resource has the machines in the state.
	Resource *pulumi.Stash

	outcome      stash.Outcome[Machines]
	wanted       Machines
	allowReplace map[string][]string
	fresh        sync.Map
}

// HostOf returns the host of a node once its machine's edit was looked at. A run that leaves the record out while
// the edit would replace the VM, or lose data, fails before it touches the VM.
func (r *Record) HostOf(name, host string) pulumi.StringOutput {
	return r.outcome.After(host, func(current Machines) error {
		was, known := current[name]
		if !known {
			return nil
		}
		wanted := r.wanted[name]
		if vm.Replaces(was.VM, wanted.VM) {
			return fmt.Errorf("node %s: its VM would be replaced, and the node was not asked to leave", name)
		}

		return Refuse(Machines{name: was}, Machines{name: wanted}, r.allowReplace)
	})
}

// IsNew reports whether the node's VM is remembered for the first time in this run. No run has tried to make
// it before, so that a VM which has its id or name belongs to somebody else.
func (r *Record) IsNew(name string) bool {
	_, fresh := r.fresh.Load(name)

	return fresh
}

// Remember registers the machines under a name. allowReplace has the fields, by node, whose edits may replace
// a VM. also runs after the machines' own checks.
func Remember(
	ctx *pulumi.Context, name string, machines Machines, allowReplace map[string][]string, also stash.On[Machines],
	opts ...pulumi.ResourceOption,
) (*Record, error) {
	r := &Record{wanted: machines, allowReplace: allowReplace}
	on := stash.On[Machines]{
		Create: func(_ hook.Step, now Machines) error {
			r.note(nil, now)

			return nil
		},
		Plan: func(s hook.Step, was, now Machines) error {
			if err := Refuse(was, now, allowReplace); err != nil || also.Plan == nil {
				return err
			}

			return also.Plan(s, was, now)
		},
		Update: func(s hook.Step, was, now Machines) error {
			r.note(was, now)
			if also.Update == nil {
				return nil
			}

			return also.Update(s, was, now)
		},
	}
	made, err := stash.Remember(ctx, name, machines, on, opts...)
	if err != nil {
		return nil, err
	}
	r.Resource, r.outcome = made, stash.OutcomeOf[Machines](made)

	return r, nil
}

func (r *Record) note(was, now Machines) {
	for name := range now {
		if _, known := was[name]; !known {
			r.fresh.Store(name, true)
		}
	}
}

// Refuse compares machines with what they were, and names every edit that would replace a VM without
// permission, lose data, or delete a protected VM. allowReplace has the fields whose edits may replace it, or
// "*".
func Refuse(was, now Machines, allowReplace map[string][]string) error {
	problems := []error{refuseProtected(was, now)}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		before, known := was[name]
		if !known {
			continue
		}
		var l check.List
		vm.Refuse(name, before.VM, now[name].VM, allowReplace[name], &l)
		problems = append(problems, l.Err(fmt.Sprintf("node %q: the edit is refused", name)))
	}

	return errors.Join(problems...)
}

// refuseProtected refuses to delete a VM that is protected: its node would be drained and wiped before Proxmox VE
// or Pulumi refuses.
func refuseProtected(was, now Machines) error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(was)) {
		after, stays := now[name]
		if was[name].Protected == "" || stays && !vm.Replaces(was[name].VM, after.VM) {
			continue
		}
		problems = append(problems, fmt.Errorf("node %s: its VM is to be deleted, and is protected by %s: set that to false "+
			"and run up first", name, was[name].Protected))
	}

	return errors.Join(problems...)
}
