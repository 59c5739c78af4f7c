// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package policy is a policy pack for stacks with talos-proxmox clusters, served to Pulumi's engine as an analyzer:
// `pulumi preview --policy-pack policy`. A policy looks at a resource before it is touched, so that what it forbids happens
// neither in a preview nor in an up.
package policy

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// Policy describes a rule about resources.
type Policy struct {
	// Name of the policy, by which its level is configured.
	Name string
	// Description of what it forbids.
	Description string
	// check returns what is wrong with a resource, a line each.
	check func(p *Pack, r Resource) []string
}

// Resource describes what the engine is about to create, update or leave alone.
type Resource struct {
	URN, Type, Name string
	// Inputs may hold what is not known yet.
	Inputs resource.PropertyMap
}

// Types of the resources that policies look at.
const (
	vmType    = "proxmoxve:VM/virtualMachine:VirtualMachine"
	stashType = "pulumi:index:Stash"
)

// Policies returns all policies.
func Policies() []Policy {
	return []Policy{
		{
			"vm-not-replaced", "No virtual machine is replaced: its node would be rebuilt.",
			(*Pack).checkReplaced,
		},
		{
			"control-planes-apart", "No two control planes of a cluster share a host: etcd would lose both with it.",
			(*Pack).checkApart,
		},
		{
			"secrets-encrypted", "No credential is a plain text: it would stand so in the state and in the log.",
			(*Pack).checkPlain,
		},
		{
			"nodes-backed-up", "Every disk is in Proxmox VE's backups, and etcd is backed up on a schedule.",
			(*Pack).checkBackups,
		},
	}
}

// Pack runs the policies with what they know of the stack.
type Pack struct {
	// Config is the stack's configuration by key, as Pulumi hands it over.
	Config map[string]string
	// Before returns the machines of all clusters that the stack's state remembers, by the URN of what remembers them.
	Before func() (map[string]Machines, error)
}

// Check returns what one policy has against a resource.
func (p *Pack) Check(policy Policy, r Resource) []string { return policy.check(p, r) }

// known returns a value without marks of secrets; null where it is not known.
func known(v resource.PropertyValue) resource.PropertyValue {
	for v.IsSecret() {
		v = v.SecretValue().Element
	}
	if v.IsComputed() || v.IsOutput() && !v.OutputValue().Known {
		return resource.NewNullProperty()
	}
	if v.IsOutput() {
		return known(v.OutputValue().Element)
	}

	return v
}

// quoted names a resource in a message.
func quoted(r Resource) string { return fmt.Sprintf("%q", r.Name) }
