// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestGateProblems holds the judge to account: each trace shows something that the gate is to prevent,
// or nothing.
func TestGateProblems(t *testing.T) {
	t.Parallel()

	at := func(second int) time.Time { return time.Unix(int64(second), 0).UTC() }
	down := func(node, role string, from, to int) event {
		return event{Op: "node.down", Object: "node/" + node, Start: at(from), End: at(to), Attrs: map[string]string{"role": role}}
	}
	served := func(node, role string, from, to int) event {
		return event{Op: "node.serving", Object: "node/" + node, Start: at(from), End: at(to), Attrs: map[string]string{"role": role}}
	}
	const plane, worker = "controlplane", "worker"

	for name, c := range map[string]struct {
		trace    trace
		workers  int
		problems []string
	}{
		"one after the other": {
			trace: trace{down("a", plane, 1, 5), down("b", plane, 5, 9), down("w", worker, 9, 12)}, workers: 1,
		},
		"two control planes": {
			trace: trace{down("a", plane, 1, 5), down("b", plane, 4, 9)}, workers: 1,
			problems: []string{"two control planes did not serve at once: node/a from Jan  1 00:00:01.000 " +
				"until Jan  1 00:00:05.000; node/b from Jan  1 00:00:04.000 until Jan  1 00:00:09.000"},
		},
		"one that never came back": {
			trace: trace{served("a", plane, 0, 2), down("b", plane, 4, 9)}, workers: 1,
			problems: []string{"two control planes did not serve at once: node/a from Jan  1 00:00:02.000 " +
				"for good; node/b from Jan  1 00:00:04.000 until Jan  1 00:00:09.000"},
		},
		"one that was retired": {
			trace: trace{
				{Op: "talos.reset", Object: "node/a", Start: at(1), End: at(3)},
				served("a", plane, 0, 2), down("b", plane, 4, 9),
			}, workers: 1,
		},
		"two workers where one may": {
			trace: trace{down("v", worker, 1, 5), down("w", worker, 4, 9)}, workers: 1,
			problems: []string{"2 workers did not serve at once, 1 may: node/w from Jan  1 00:00:04.000 until Jan  1 00:00:09.000"},
		},
		"two workers where two may": {
			trace: trace{down("v", worker, 1, 5), down("w", worker, 4, 9), down("x", worker, 5, 7)}, workers: 2,
		},
		"a worker beside a control plane": {
			trace: trace{down("a", plane, 1, 5), down("w", worker, 4, 9)}, workers: 1,
			problems: []string{"a worker and a control plane did not serve at once: node/a from Jan  1 00:00:01.000 " +
				"until Jan  1 00:00:05.000; node/w from Jan  1 00:00:04.000 until Jan  1 00:00:09.000"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.problems, c.trace.gateProblems(c.workers))
		})
	}
}

func TestTouched(t *testing.T) {
	t.Parallel()

	seen := trace{
		{Op: "pve.qmreboot", Object: "qmreboot/800"}, {Op: "vm.config", Object: "vm/800"},
		{Op: "node.serving", Object: "node/10.0.0.2"}, {Op: "talos.apply", Object: "node/10.0.0.1"},
	}
	assert.Equal(t, map[string][]string{
		"vm/800": {"pve.qmreboot", "vm.config"}, "node/10.0.0.1": {"talos.apply"},
	}, seen.touched())
}
