// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

func TestAnApplyThatFindsNobodySaysWhereToLook(t *testing.T) {
	t.Parallel()

	node := cluster.Member{Name: "ctrl-00", Address: "10.200.5.1", ControlPlane: true}
	look := "node ctrl-00 (10.200.5.1) did not take its configuration\n" +
		"  look at: the console of ctrl-00; is it powered on, is 10.200.5.1 its address, is port 50000 reachable from here? " +
		"`pulumi up --refresh` starts a VM of the stack that is off"
	for name, c := range map[string]struct{ err, want string }{
		"nobody there": {"Error applying configuration: rpc error: code = Unavailable desc = connection error", look},
		"no answer":    {"context deadline exceeded", look},
		"a refusal":    {"rpc error: code = InvalidArgument desc = configuration validation failed", ""},
		"nobody tells": {"", ""},
	} {
		assert.Equal(t, c.want, whereToLook(node, []string{c.err}), name)
	}
}
