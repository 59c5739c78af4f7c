// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
)

// TestANodeThatLostItsConfigurationGetsItAgain: it is not there at first, then waits, and takes it at the
// second try. One that runs is left alone, and so is one whose configuration nobody knows.
func TestANodeThatLostItsConfigurationGetsItAgain(t *testing.T) {
	t.Parallel()

	ctx, cancel := context.WithCancel(t.Context())
	var asked, applied, said []string
	looks, tries := 0, 0
	rollout.ConfigReapplier{
		Members: []cluster.Member{
			{Name: "lost", Address: "10.0.0.1"}, {Name: "runs", Address: "10.0.0.2"}, {Name: "new", Address: "10.0.0.3"},
		},
		Config:   func(node string) (string, bool) { return "config of " + node, node != "new" },
		Interval: time.Millisecond,
		InMaintenance: func(_ context.Context, address string) error {
			asked = append(asked, address)
			if address == "10.0.0.1" {
				if looks++; looks > 1 {
					return nil
				}
			}

			return errors.New("no route to host")
		},
		Apply: func(_ context.Context, address, config string) error {
			applied = append(applied, address+": "+config)
			if tries++; tries == 1 {
				return errors.New("connection reset")
			}
			cancel()

			return nil
		},
		Report: func(line string) { said = append(said, line) },
	}.Watch(ctx)

	assert.Equal(t, []string{"10.0.0.1: config of lost", "10.0.0.1: config of lost"}, applied)
	assert.Equal(t, []string{
		"lost waits for its first configuration again, and does not take it: connection reset",
		"lost waited for its first configuration again, and got it",
	}, said)
	assert.NotContains(t, asked, "10.0.0.3")
}
