// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// event decodes an operation of the site's trace.
type event struct {
	Op     string            `json:"op"`
	Object string            `json:"object"`
	Start  time.Time         `json:"start"`
	End    time.Time         `json:"end"`
	Error  string            `json:"error"`
	Attrs  map[string]string `json:"attrs"`
}

// trace holds what happened at a site, in the order of its beginning. The site writes it, never the
// product, and what is asserted of a living cluster is asserted of it.
type trace []event

// trace returns what happened since a moment.
func (s *site) trace(since time.Time) trace {
	s.t.Helper()

	r := s.lab("trace", "--json")
	require.Zero(s.t, r.code, r.all())

	return parseTrace(s.t, r.stdout).since(since)
}

func parseTrace(t *testing.T, text string) trace {
	t.Helper()

	var all trace
	decoder := json.NewDecoder(strings.NewReader(text))
	for decoder.More() {
		var e event
		require.NoError(t, decoder.Decode(&e))
		all = append(all, e)
	}
	slices.SortStableFunc(all, func(a, b event) int { return a.Start.Compare(b.Start) })

	return all
}

// since returns the operations that ended after a moment: what was down before counts while it is.
func (t trace) since(moment time.Time) trace {
	return slices.DeleteFunc(slices.Clone(t), func(e event) bool { return e.End.Before(moment) })
}

// of returns the operations of some kinds.
func (t trace) of(ops ...string) trace {
	return slices.DeleteFunc(slices.Clone(t), func(e event) bool { return !slices.Contains(ops, e.Op) })
}

// objects returns whom the operations concern, in order, each once.
func (t trace) objects() []string {
	var objects []string
	for _, e := range t {
		if !slices.Contains(objects, e.Object) {
			objects = append(objects, e.Object)
		}
	}

	return objects
}

// outage describes a time in which a node did not serve.
type outage struct {
	node     string
	plane    bool
	from, to time.Time // to is zero while it lasts
}

func (o outage) String() string {
	to := "for good"
	if !o.to.IsZero() {
		to = "until " + o.to.Format(time.StampMilli)
	}

	return fmt.Sprintf("%s from %s %s", o.node, o.from.Format(time.StampMilli), to)
}

func (o outage) overlaps(other outage) bool {
	return (other.to.IsZero() || o.from.Before(other.to)) && (o.to.IsZero() || other.from.Before(o.to))
}

// outages returns the times in which nodes did not serve that had served before. A node that has left the
// cluster for good owes it nothing more.
func (t trace) outages() []outage {
	var found []outage
	for _, e := range t.of("node.down") {
		found = append(found, outage{node: e.Object, plane: e.Attrs["role"] == "controlplane", from: e.Start, to: e.End})
	}
	for _, e := range t.of("node.serving") {
		ended := slices.ContainsFunc(found, func(o outage) bool {
			return o.node == e.Object && !o.from.After(e.End.Add(time.Millisecond)) && (o.to.IsZero() || o.to.After(e.End))
		})
		left := slices.ContainsFunc(t.of("talos.reset"), func(r event) bool {
			return r.Object == e.Object && !e.End.Before(r.Start) && !e.End.After(r.End)
		})
		if !ended && !left {
			found = append(found, outage{node: e.Object, plane: e.Attrs["role"] == "controlplane", from: e.End})
		}
	}
	slices.SortFunc(found, func(a, b outage) int { return a.from.Compare(b.from) })

	return found
}

// gateProblems says where the trace shows what the gate is to prevent: two control planes that did not
// serve at the same time, a control plane beside a worker, or more workers than may be unavailable.
func (t trace) gateProblems(maxUnavailable int) []string {
	var problems []string
	outages := t.outages()
	for i, o := range outages {
		workers := 1
		for _, before := range outages[:i] {
			if before.node == o.node || !before.overlaps(o) {
				continue
			}
			switch {
			case o.plane && before.plane:
				problems = append(problems, fmt.Sprintf("two control planes did not serve at once: %v; %v", before, o))
			case o.plane || before.plane:
				problems = append(problems, fmt.Sprintf("a worker and a control plane did not serve at once: %v; %v", before, o))
			case before.to.IsZero() || before.to.After(o.from):
				workers++
			}
		}
		if workers > maxUnavailable && !o.plane {
			problems = append(problems, fmt.Sprintf("%d workers did not serve at once, %d may: %v", workers, maxUnavailable, o))
		}
	}

	return problems
}

// touched returns the nodes that anything was done to, by address or VM, each with what.
func (t trace) touched() map[string][]string {
	touched := map[string][]string{}
	for _, e := range t {
		object := e.Object
		switch {
		case strings.HasPrefix(e.Op, "pve.qm"), e.Op == "vm.config":
			object = "vm/" + object[strings.LastIndex(object, "/")+1:]
		case slices.Contains([]string{
			"talos.apply", "talos.upgrade", "talos.reboot", "talos.shutdown", "talos.reset", "talos.bootstrap",
			"node.drain", "etcd.leave",
		}, e.Op):
		default:
			continue
		}
		touched[object] = append(touched[object], e.Op)
	}

	return touched
}

// passesTheGate asserts that nothing which the gate is to prevent has happened since a moment.
func (s *site) passesTheGate(since time.Time, maxUnavailable int) {
	s.t.Helper()
	assert.Empty(s.t, s.trace(since).gateProblems(maxUnavailable), "the gate holds")
}

// untouched asserts that nothing was done to those nodes, each named as in the trace: "node/10.0.0.1",
// "vm/800".
func (s *site) untouched(since time.Time, objects ...string) {
	s.t.Helper()

	touched := s.trace(since).touched()
	for _, object := range objects {
		assert.Emptyf(s.t, touched[object], "what was done to %s", object)
	}
}

// inOrder asserts that an operation came to these objects, one after the other: each began when the
// one before had ended.
func (s *site) inOrder(since time.Time, op string, objects ...string) {
	s.t.Helper()

	found := s.trace(since).of(op)
	assert.Equalf(s.t, objects, found.objects(), "the order of %s", op)
	for i := 1; i < len(found); i++ {
		assert.Falsef(s.t, found[i].Start.Before(found[i-1].End), "%s of %s began before that of %s had ended",
			op, found[i].Object, found[i-1].Object)
	}
}

// down asserts which nodes did not serve at some time, "10.0.0.1".
func (s *site) down(since time.Time, addresses ...string) {
	s.t.Helper()

	nodes := map[string]bool{}
	for _, o := range s.trace(since).outages() {
		nodes[strings.TrimPrefix(o.node, "node/")] = true
	}
	assert.ElementsMatch(s.t, addresses, slices.Collect(maps.Keys(nodes)), "nodes that went down")
}
