// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package chaos

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Event decodes an operation of the lab's trace. The lab writes it, never the product.
type Event struct {
	Op     string            `json:"op"`
	Object string            `json:"object"`
	Start  time.Time         `json:"start"`
	End    time.Time         `json:"end"`
	Error  string            `json:"error"`
	Attrs  map[string]string `json:"attrs"`
}

// VM describes a virtual machine as the lab has it.
type VM struct {
	VMID   int    `json:"vmid"`
	Name   string `json:"name"`
	Host   string `json:"host"`
	Status string `json:"status"`
}

// Site holds what the lab says about itself.
type Site struct {
	VMs   []VM `json:"vms"`
	Nodes []struct {
		VMID       int    `json:"vmId"`
		Hostname   string `json:"hostname"`
		Address    string `json:"address"`
		Stage      string `json:"stage"`
		Serving    bool   `json:"serving"`
		EtcdMember string `json:"etcdMember"`
	} `json:"nodes"`
	Clusters []struct {
		Name    string   `json:"name"`
		Members []string `json:"members"`
		Healthy bool     `json:"healthy"`
	} `json:"clusters"`
}

// Resource decodes an entry of the stack's state.
type Resource struct {
	URN  string
	Type string
	// VMID of a VM; 0 for anything else.
	VMID int
}

// Observation records one command of Pulumi's and what came of it.
type Observation struct {
	Command Step
	// Exit is the command's exit code; Killed reports whether the lab killed it.
	Exit   int
	Killed bool
	// Changed reports whether Pulumi says that it created, updated, replaced or deleted anything.
	Changed bool
	// From and To bound the command.
	From, To time.Time
	// Events since the site exists, in the order of their start.
	Events []Event
	// Before and After are the site before and after the command.
	Before, After Site
	// StateBefore and StateAfter are the resources in the stack's state.
	StateBefore, StateAfter []Resource
	// Wanted is what the stack file says.
	Wanted Model
}

// full reports whether the command looks at the whole stack.
func (o Observation) full() bool {
	return !slices.ContainsFunc(o.Command.Args, func(a string) bool {
		return strings.HasPrefix(a, "--target") || strings.HasPrefix(a, "--exclude")
	})
}

// node returns the name of the node with that address among all that the trace knows.
func (e Event) node() string {
	address, ok := strings.CutPrefix(e.Object, "node/")
	if !ok {
		return ""
	}

	return address
}

// vm returns the VM's id that a task of Proxmox VE or an operation of a node is about; 0 where there is none.
func (e Event) vm() int {
	text := e.Attrs["vm"]
	if strings.HasPrefix(e.Op, "pve.qm") || strings.HasPrefix(e.Object, "vm/") {
		text = e.Object[strings.LastIndex(e.Object, "/")+1:]
	}
	id, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}

	return id
}

// of returns the events of some operations that did not fail.
func of(events []Event, ops ...string) []Event {
	return slices.DeleteFunc(slices.Clone(events), func(e Event) bool { return e.Error != "" || !slices.Contains(ops, e.Op) })
}
