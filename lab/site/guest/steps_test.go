// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package guest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSteps(t *testing.T) {
	t.Parallel()

	s, err := ParseSteps("download=60s,boot=30s,jitter=0.2")
	require.NoError(t, err)
	assert.InDelta(t, time.Minute, s.of(StepDownload, "pve1", time.Second), float64(12*time.Second))
	assert.Equal(t, s.of(StepBoot, "301", 0), s.of(StepBoot, "301", 0), "the same for the same machine")
	assert.NotEqual(t, s.of(StepBoot, "301", 0), s.of(StepBoot, "302", 0), "and other for another one")

	usual, err := ParseSteps("")
	require.NoError(t, err)
	assert.Equal(t, 15*time.Second, usual.of(StepBoot, "301", 15*time.Second))

	for _, wrong := range []string{"boot", "boot=long", "boot=-1s", "sleep=1s", "jitter=2", "boot=1s,"} {
		_, err := ParseSteps(wrong)
		assert.Error(t, err, wrong)
	}
}
