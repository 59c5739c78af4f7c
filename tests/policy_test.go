// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPoliciesOfAPreview has the policy pack look at previews: of a stack with every control plane on one host and no
// backups of etcd, of the same with those policies off, and of an edit that replaces a VM.
func TestPoliciesOfAPreview(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	plugins := filepath.Dir(s.build("cmd/pulumi-analyzer-policy-talos-proxmox"))
	one := &running{site: s, stack: "small", file: s.small()}
	s.create("small")
	config := filepath.Join(t.TempDir(), "policies.json")
	preview := func(more ...string) result {
		return s.try("sh", "-c", "PATH="+plugins+":$PATH pulumi preview --stack small --config-file "+one.file+
			" --non-interactive --policy-pack "+filepath.Join(s.root, "policy")+" "+strings.Join(more, " "))
	}

	refused := preview()
	assert.NotZero(t, refused.code)
	assert.Contains(t, refused.all(), "control planes cp-1, cp-2, cp-3 share host pve1: name another host for one of them")
	assert.Contains(t, refused.all(), `cluster "small" has no scheduled backup of etcd: set kubernetes.etcd.backup`)
	assert.Contains(t, refused.all(), "[mandatory]")

	require.NoError(t, os.WriteFile(config, []byte(`{"control-planes-apart": "disabled", "nodes-backed-up": "advisory"}`), 0o600))
	taken := preview("--policy-pack-config", config)
	assert.Zero(t, taken.code, taken.all())
	assert.NotContains(t, taken.all(), "share host")
	assert.Contains(t, taken.all(), "has no scheduled backup of etcd")

	one = s.up("small", one.file)
	same := preview("--policy-pack-config", config)
	assert.Zero(t, same.code, same.all())
	one.file = s.small("readyTimeout: 4m", "readyTimeout: 4m\n    replace: {cp-2: 1}")
	replaced := preview("--policy-pack-config", config)
	assert.NotZero(t, replaced.code)
	assert.Contains(t, replaced.all(), "the VM of node cp-2 would be replaced (lifecycle.replace: 0 => 1)")
}
