// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

func TestDrainsAsTheLifecycleSays(t *testing.T) {
	t.Parallel()

	assert.Equal(t, rollout.Drain{Timeout: 10 * time.Minute, Interval: 5 * time.Second}, drainOf(spec.Config{}.WithDefaults().Lifecycle))
	assert.Equal(t, rollout.Drain{Timeout: time.Minute, Force: true, Interval: 5 * time.Second}, drainOf(spec.Lifecycle{
		DrainTimeout: spec.Ptr(spec.Duration(time.Minute)), DrainPolicy: spec.Ptr("force"),
	}))
}

func TestSkipsKubernetesChecksAsTheLifecycleSays(t *testing.T) {
	t.Parallel()

	cfg := spec.Config{}.WithDefaults()
	assert.False(t, clusterOf(cfg).SkipKubernetes)
	cfg.Lifecycle.SkipKubernetesChecks = spec.Ptr(true)
	assert.True(t, clusterOf(cfg).SkipKubernetes)
}

func TestStoreCommandNamesTheSecret(t *testing.T) {
	t.Parallel()

	command := []string{"vault", "kv", "put", "secret/{name}", "value=-"}
	assert.Equal(t, []string{"vault", "kv", "put", "secret/one", "value=-"}, commandFor(command, "one"))
	assert.Equal(t, "secret/{name}", command[3])
}
