// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package hook

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestBeat(t *testing.T) {
	t.Parallel()

	began := time.Unix(0, 0)
	after := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	const silence = 25 * time.Second
	p := &progress{began: began}
	assert.Empty(t, p.beat(after(30), silence), "nothing is waited for yet")
	p.say("waiting: etcd is healthy on every control plane: cp-2: service etcd is in state Preparing", after(40))
	assert.Empty(t, p.beat(after(60), silence), "it was said just now")
	assert.Equal(t, "waiting: etcd is healthy on every control plane: cp-2: service etcd is in state Preparing (1m5s)", p.beat(after(65), silence))
	assert.Empty(t, p.beat(after(70), silence), "it was said again just now")
	p.limit, p.at, p.of = 20*time.Minute, 2, 6
	assert.Equal(t, "node 2/6: waiting: etcd is healthy on every control plane: cp-2: service etcd is in state Preparing (1m30s of at most 20m0s)",
		p.beat(after(90), silence))
	p.say("cp-2 is back", after(100))
	assert.Empty(t, p.beat(after(120), silence))
}

func TestPassingStatesAreNotKept(t *testing.T) {
	t.Parallel()

	for line, passing := range map[string]bool{
		"waiting: the Talos API answers on every node: cp-1: connection refused": true,
		"draining cp-1: waiting for pod default/web":                             true,
		"waiting for its turn at the gate":                                       true,
		"cp-1 goes from Talos v1.12.4 to v1.12.5":                                false,
		"draining cp-1: going on after 5m0s with pod default/web left":           false,
		`cluster "small" is healthy: 3 nodes`:                                    true,
		"cp-1 pulls example.com/installer:v1.12.5":                               true,
		"cp-1 is back with Talos v1.12.5":                                        false,
		"cp-1 waited for its first configuration again, and got it":              false,
	} {
		assert.Equal(t, passing, isPassing(line), line)
	}
}
