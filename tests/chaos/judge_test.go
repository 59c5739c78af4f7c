// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package chaos_test

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/tests/chaos"
)

func at(second int) time.Time { return time.Unix(int64(second), 0).UTC() }

// event returns an operation of a control plane, cp-1 for 1.
func event(op string, node, from, to int) chaos.Event {
	return chaos.Event{
		Op: op, Object: "node/10.30.0." + strconv.Itoa(node), Start: at(from), End: at(to),
		Attrs: map[string]string{"role": "controlplane", "vm": strconv.Itoa(300 + node)},
	}
}

func task(op string, node, from, to int) chaos.Event {
	return chaos.Event{Op: op, Object: op + "/" + strconv.Itoa(300+node), Start: at(from), End: at(to)}
}

// three returns a cluster of three control planes that serve from second 10 on.
func three(more ...chaos.Event) []chaos.Event {
	events := []chaos.Event{event("talos.bootstrap", 1, 5, 6), event("etcd.join", 2, 6, 7), event("etcd.join", 3, 7, 8)}
	for n := 1; n <= 3; n++ {
		events = append(events, task("pve.qmcreate", n, 1, 2))
	}

	return append(events, more...)
}

// site has these nodes, which serve.
func site(t *testing.T, nodes ...int) chaos.Site {
	t.Helper()

	var s chaos.Site
	for _, n := range nodes {
		s.VMs = append(s.VMs, chaos.VM{VMID: 300 + n, Status: "running"})
		s.Nodes = append(s.Nodes, struct {
			VMID       int    `json:"vmId"`
			Hostname   string `json:"hostname"`
			Address    string `json:"address"`
			Stage      string `json:"stage"`
			Serving    bool   `json:"serving"`
			EtcdMember string `json:"etcdMember"`
		}{VMID: 300 + n, Address: "10.30.0." + strconv.Itoa(n), Stage: "running", Serving: true, EtcdMember: "m" + strconv.Itoa(n)})
	}

	return s
}

// TestJudge holds the judge to account: each observation shows something that must never happen, or nothing.
func TestJudge(t *testing.T) {
	t.Parallel()

	up := chaos.Step{Verb: chaos.Run, Args: []string{"up"}}
	model := chaos.NewModel([]string{"cp-1", "cp-2", "cp-3"})
	forced := model
	forced.Force = []string{"cp-3"}
	whole := site(t, 1, 2, 3)
	lost := site(t, 1, 2, 3)
	lost.Nodes[1].Stage, lost.Nodes[1].Serving = "maintenance", false
	served := event("node.serving", 3, 10, 90)
	refreshing := chaos.Step{Verb: chaos.Run, Args: []string{"up", "--refresh"}}
	installed := []chaos.Resource{{Type: "kubernetes:helm.sh/v3:Release"}}
	clustered := whole
	require.NoError(t, json.Unmarshal([]byte(`{"clusters": [{"name": "small"}]}`), &clustered))

	for name, c := range map[string]struct {
		o        chaos.Observation
		problems []string
	}{
		"one after the other": {o: chaos.Observation{Events: three(event("node.down", 1, 101, 105), event("node.down", 2, 106, 109))}},
		"two at once": {
			o: chaos.Observation{Events: three(event("node.down", 1, 101, 105), event("node.down", 2, 103, 109))},
			problems: []string{
				"quorum: 10.30.0.2 stopped serving when 2 of etcd's 3 members were down (10.30.0.1, 10.30.0.2)",
				"gate: 10.30.0.2 stopped serving while 10.30.0.1 did not serve",
			},
		},
		"a second one beside one that was down before": {
			o: chaos.Observation{Events: three(event("node.serving", 1, 10, 50), event("node.down", 2, 103, 109))},
			problems: []string{
				"quorum: 10.30.0.2 stopped serving when 2 of etcd's 3 members were down (10.30.0.1, 10.30.0.2)",
			},
		},
		"one that was cut off before and serves again": {
			o: chaos.Observation{Before: whole, Events: three(event("node.serving", 1, 10, 50), event("node.down", 2, 103, 109))},
		},
		"two drains at once": {
			o:        chaos.Observation{Events: three(event("node.drain", 1, 101, 105), event("node.drain", 2, 104, 109))},
			problems: []string{"drain: 10.30.0.2 was drained while 10.30.0.1 was"},
		},
		"drains one after the other": {o: chaos.Observation{Events: three(event("node.drain", 1, 101, 105), event("node.drain", 2, 106, 109))}},
		"one of one":                 {o: chaos.Observation{Events: []chaos.Event{event("talos.bootstrap", 1, 5, 6), event("node.down", 1, 101, 105)}}},
		"a member's VM deleted": {
			o:        chaos.Observation{Events: three(served, event("node.down", 3, 90, 120), task("pve.qmdestroy", 3, 102, 103))},
			problems: []string{"retire: VM 303 was deleted, and its node was never reset"},
		},
		"deleted by the user's word": {
			o: chaos.Observation{Wanted: forced, Events: three(served, event("node.down", 3, 90, 120), task("pve.qmdestroy", 3, 102, 103))},
		},
		"retired": {
			o: chaos.Observation{Events: three(served, event("talos.reset", 3, 89, 91), task("pve.qmdestroy", 3, 102, 103))},
		},
		"a VM that never was a member": {o: chaos.Observation{Events: three(task("pve.qmdestroy", 3, 102, 103))}},
		"done with a node out": {
			o:        chaos.Observation{Changed: true, Wanted: model, After: lost},
			problems: []string{"success: exit code 0, and node cp-2 is in stage maintenance and does not serve"},
		},
		"failed with a node out": {o: chaos.Observation{Exit: 255, Changed: true, Wanted: model, After: lost}},
		"nothing to do":          {o: chaos.Observation{Wanted: model, After: lost}},
		"a VM too many": {
			o:        chaos.Observation{Changed: true, Wanted: chaos.NewModel([]string{"cp-1", "cp-2"}), After: whole},
			problems: []string{"success: exit code 0, and VM 303 of no node is there"},
		},
		"forgotten": {
			o: chaos.Observation{
				Exit: 1, After: whole, StateBefore: []chaos.Resource{{VMID: 301}, {VMID: 302}}, StateAfter: []chaos.Resource{{VMID: 301}},
			},
			problems: []string{"state: VM 302 is there, and the state has forgotten it"},
		},
		"gone and forgotten": {
			o: chaos.Observation{Exit: 1, After: site(t, 1), StateBefore: []chaos.Resource{{VMID: 301}, {VMID: 302}}, StateAfter: []chaos.Resource{{VMID: 301}}},
		},
		"GitOps forgotten": {
			o: chaos.Observation{
				Command: refreshing, Exit: 1, Wanted: chaos.Model{GitOps: true}, After: clustered, StateBefore: installed,
			},
			problems: []string{"state: a refresh forgot 1 objects of Kubernetes"},
		},
		"GitOps turned off": {o: chaos.Observation{Command: refreshing, Exit: 1, After: clustered, StateBefore: installed}},
		"bootstrapped twice": {
			o:        chaos.Observation{Exit: 1, Events: three(event("talos.bootstrap", 2, 102, 103))},
			problems: []string{"bootstrap: etcd was bootstrapped 2 times"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.o.From, c.o.To = at(100), at(200)
			if c.o.Command.Verb == "" {
				c.o.Command = up
			}
			assert.Equal(t, c.problems, chaos.Judge(c.o))
		})
	}
}
