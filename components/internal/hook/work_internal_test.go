// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package hook

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestSummaryOfARunsWork(t *testing.T) {
	t.Parallel()
	var w Work
	assert.Empty(t, w.Lines(), "a new cluster has nothing behind it")
	at := func(minutes int) time.Time { return time.Date(2026, 1, 1, 10, minutes, 0, 0, time.UTC) }
	w.Did("Talos v1.12.5", "cp-1", at(0), at(3))
	w.Did("Talos v1.12.5", "cp-2", at(3), at(7))
	w.Did("configurations", "cp-1", at(8), at(9))
	w.Did("Talos v1.12.5", "cp-2", at(3), at(7)) // said twice
	w.Warned()
	assert.Equal(t, []string{"Talos v1.12.5: 2 nodes in 7m0s", "configurations: 1 node in 1m0s", "1 warning above"}, w.Lines())
}
