// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package chaos

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Judge returns what a command did that it must never do, one line each; none where all is well.
func Judge(o Observation) []string {
	return slices.Concat(
		quorumKept(o), oneAtATime(o), membersRetired(o), successIsTrue(o), nothingForgotten(o), bootstrappedOnce(o), drainsApart(o),
	)
}

// outage describes a time in which a node did not serve that had served before.
type outage struct {
	address  string
	plane    bool
	from, to time.Time // to is zero while it lasts
}

func (o outage) at(t time.Time) bool { return !t.Before(o.from) && (o.to.IsZero() || t.Before(o.to)) }

// outages returns the times in which nodes did not serve, by start. A node that was reset has left the
// cluster and owes it nothing more.
func outages(events []Event) []outage {
	var found []outage
	for _, e := range of(events, "node.down") {
		found = append(found, outage{address: e.node(), plane: e.Attrs["role"] == "controlplane", from: e.Start, to: e.End})
	}
	for _, e := range of(events, "node.serving") {
		if e.End.IsZero() {
			continue
		}
		followed := slices.ContainsFunc(found, func(o outage) bool {
			return o.address == e.node() && !o.from.After(e.End.Add(time.Millisecond)) && (o.to.IsZero() || o.to.After(e.End))
		})
		reset := slices.ContainsFunc(of(events, "talos.reset"), func(r Event) bool {
			return r.node() == e.node() && !e.End.Before(r.Start) && !e.End.After(r.End)
		})
		if !followed && !reset {
			found = append(found, outage{address: e.node(), plane: e.Attrs["role"] == "controlplane", from: e.End})
		}
	}
	slices.SortFunc(found, func(a, b outage) int { return a.from.Compare(b.from) })

	return found
}

// outagesOf returns the outages as far as the observation tells. The trace notes an operation when it ends, so that it
// does not tell yet of a node that serves again after it was cut off: the site does.
func outagesOf(o Observation) []outage {
	all := outages(o.Events)
	for i, out := range all {
		switch {
		case !out.to.IsZero():
		case out.from.Before(o.From) && serves(o.Before, out.address):
			all[i].to = o.From
		case serves(o.After, out.address):
			all[i].to = o.To
		}
	}

	return all
}

func serves(site Site, address string) bool {
	for _, n := range site.Nodes {
		if n.Address == address {
			return n.Serving
		}
	}

	return false
}

// etcdMembers returns the addresses of etcd's members at a moment, as the trace tells it.
func etcdMembers(o Observation, at time.Time) []string {
	ids := map[string]string{}
	for _, site := range []Site{o.Before, o.After} {
		for _, n := range site.Nodes {
			if n.EtcdMember != "" {
				ids[n.EtcdMember] = n.Address
			}
		}
	}
	var members []string
	drop := func(address string) {
		members = slices.DeleteFunc(members, func(m string) bool { return m == address })
	}
	ended := of(o.Events, "talos.bootstrap", "etcd.join", "etcd.leave", "etcd.remove", "talos.reset")
	slices.SortStableFunc(ended, func(a, b Event) int { return a.End.Compare(b.End) })
	for _, e := range ended {
		if e.End.After(at) {
			break
		}
		switch e.Op {
		case "talos.bootstrap", "etcd.join":
			drop(e.node())
			members = append(members, e.node())
		case "etcd.remove":
			drop(ids[e.Attrs["member"]])
		default:
			drop(e.node())
		}
	}

	return members
}

// quorumKept finds outages that begin while the command runs and leave etcd without a majority. A cluster
// of one or two members has none to spare, so that any reboot costs it.
func quorumKept(o Observation) []string {
	var problems []string
	all := outagesOf(o)
	for _, began := range all {
		if !began.plane || began.from.Before(o.From) || began.from.After(o.To) {
			continue
		}
		members := etcdMembers(o, began.from)
		down := slices.DeleteFunc(slices.Clone(members), func(m string) bool {
			return !slices.ContainsFunc(all, func(x outage) bool { return x.address == m && x.at(began.from) })
		})
		if len(members) >= 3 && len(members)-len(down) < len(members)/2+1 {
			problems = append(problems, fmt.Sprintf("quorum: %s stopped serving when %d of etcd's %d members were down (%s)",
				began.address, len(down), len(members), strings.Join(down, ", ")))
		}
	}

	return problems
}

// oneAtATime finds a control plane that stops serving beside another node which the command has taken down
// itself and which is not back. One that somebody took down by hand is not the command's doing.
func oneAtATime(o Observation) []string {
	var problems []string
	all := outagesOf(o)
	for i, began := range all {
		if began.from.Before(o.From) || began.from.After(o.To) {
			continue
		}
		for _, other := range all[:i] {
			ours := !other.from.Before(o.From) && other.address != began.address && other.at(began.from)
			if ours && (other.plane || began.plane) {
				problems = append(problems, fmt.Sprintf("gate: %s stopped serving while %s did not serve", began.address, other.address))
			}
		}
	}

	return problems
}

// membersRetired finds VMs that were deleted while their node was part of the cluster and had not been
// reset, unless the stack names the node in lifecycle.force.
func membersRetired(o Observation) []string {
	var problems []string
	for _, destroyed := range of(o.Events, "pve.qmdestroy") {
		if destroyed.Start.Before(o.From) || destroyed.Start.After(o.To) || o.Command.Has("destroy") {
			continue
		}
		id := destroyed.vm()
		forced := slices.ContainsFunc(o.Wanted.Force, func(n string) bool { return VMID(n) == id })
		if !forced && wasMember(o.Events, id, destroyed.Start) {
			problems = append(problems, fmt.Sprintf("retire: VM %d was deleted, and its node was never reset", id))
		}
	}

	return problems
}

// wasMember reports whether the node of a VM served since the VM was made, and was not reset afterwards.
func wasMember(events []Event, id int, at time.Time) bool {
	var made, served, reset time.Time
	for _, e := range events {
		if e.Error != "" || e.vm() != id || e.Start.After(at) {
			continue
		}
		switch e.Op {
		case "pve.qmcreate":
			made = e.Start
		case "node.serving":
			served = e.Start
		case "talos.reset":
			reset = e.Start
		}
	}

	return served.After(made) && !reset.After(served)
}

// successIsTrue finds nodes that are out although the command says that all went well. A command that has
// nothing to do and was not told to refresh looks at nothing.
func successIsTrue(o Observation) []string {
	looked := o.Changed || o.Command.Has("--refresh")
	if o.Exit != 0 || !o.Command.Has("up") || !o.full() || !looked {
		return nil
	}
	var problems []string
	for _, node := range o.Wanted.Nodes {
		if why := missing(o.After, node); why != "" {
			problems = append(problems, fmt.Sprintf("success: exit code 0, and node %s %s", node, why))
		}
	}
	for _, vm := range o.After.VMs {
		if vm.VMID >= 300 && vm.VMID < 400 && !slices.ContainsFunc(o.Wanted.Nodes, func(n string) bool { return VMID(n) == vm.VMID }) {
			problems = append(problems, fmt.Sprintf("success: exit code 0, and VM %d of no node is there", vm.VMID))
		}
	}
	for _, c := range o.After.Clusters {
		members, planes := slices.Sorted(slices.Values(c.Members)), slices.Sorted(slices.Values(o.Wanted.ControlPlanes()))
		if !slices.Equal(members, planes) {
			problems = append(problems, fmt.Sprintf("success: exit code 0, and etcd has the members %v, not %v", members, planes))
		}
	}

	return problems
}

// missing returns why a node does not serve; empty where it does.
func missing(site Site, node string) string {
	for _, n := range site.Nodes {
		if n.VMID != VMID(node) {
			continue
		}
		if n.Stage != "running" || !n.Serving {
			return "is in stage " + n.Stage + " and does not serve"
		}

		return ""
	}

	return "is not there"
}

// nothingForgotten finds VMs that the state knew before the command, that are still there, and that the
// state does not know any more.
func nothingForgotten(o Observation) []string {
	if o.Killed {
		return nil // what a killed run has not noted is in the state's pending operations
	}
	var problems []string
	for _, r := range o.StateBefore {
		if r.VMID == 0 || slices.ContainsFunc(o.StateAfter, func(s Resource) bool { return s.VMID == r.VMID }) {
			continue
		}
		for _, vm := range o.After.VMs {
			if vm.VMID == r.VMID {
				problems = append(problems, fmt.Sprintf("state: VM %d is there, and the state has forgotten it", r.VMID))
			}
		}
	}
	// What runs inside the cluster is out of sight while its API is away; it is not gone. An up may take out what the stack
	// file turned off.
	if o.Command.Has("refresh") || o.Command.Has("--refresh") && o.Wanted.GitOps {
		before, after := inKubernetes(o.StateBefore), inKubernetes(o.StateAfter)
		if after < before && len(o.After.Clusters) > 0 {
			problems = append(problems, fmt.Sprintf("state: a refresh forgot %d objects of Kubernetes", before-after))
		}
	}

	return problems
}

func inKubernetes(state []Resource) int {
	n := 0
	for _, r := range state {
		if strings.HasPrefix(r.Type, "kubernetes:") {
			n++
		}
	}

	return n
}

// bootstrappedOnce finds a second bootstrap of etcd.
func bootstrappedOnce(o Observation) []string {
	if n := len(of(o.Events, "talos.bootstrap")); n > 1 {
		return []string{fmt.Sprintf("bootstrap: etcd was bootstrapped %d times", n)}
	}

	return nil
}

// drainsApart finds nodes that are drained at the same time: the stack file lets one node be away.
func drainsApart(o Observation) []string {
	var problems []string
	all := of(o.Events, "node.drain")
	for i, began := range all {
		if began.Start.Before(o.From) || began.Start.After(o.To) {
			continue
		}
		for _, other := range all[:i] {
			if other.Object != began.Object && !other.Start.Before(o.From) && (other.End.IsZero() || other.End.After(began.Start)) {
				problems = append(problems, fmt.Sprintf("drain: %s was drained while %s was", began.node(), other.node()))
			}
		}
	}

	return problems
}
