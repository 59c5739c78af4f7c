// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components_test

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/components"
	"github.com/talos-proxmox/talos-proxmox/internal/pulumitest"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// TestClusterTakesCredentialsOfOtherResources gives a cluster what a secrets manager would produce in the same run, and
// nothing in its place in the configuration.
func TestClusterTakesCredentialsOfOtherResources(t *testing.T) {
	t.Parallel()
	cfg := oneNode()
	cfg.Proxmox.SSH = &spec.SSH{Username: "root"}
	r := pulumitest.Recorder{State: talosState(t, true)}
	require.NoError(t, r.Run(true, func(ctx *pulumi.Context) error {
		_, err := components.NewCluster(ctx, "edge", &components.ClusterArgs{
			Config: cfg, Directory: t.TempDir(),
			ProxmoxAPIToken: pulumi.String("u@pam!ci=one"), ProxmoxSSHPrivateKey: pulumi.String("the key"),
		})

		return err
	}))
	provider, ok := r.Get("edge-proxmox")
	require.True(t, ok)
	assert.Equal(t, "u@pam!ci=one", revealed(t, provider.Inputs["apiToken"]))
	ssh := provider.Inputs["ssh"]
	if ssh.IsSecret() { // a secret inside makes secrets of what is around it
		ssh = ssh.SecretValue().Element
	}
	assert.Equal(t, "the key", revealed(t, ssh.ObjectValue()["privateKey"]))
	assert.Nil(t, cfg.Proxmox.SSH.Password, "what the caller gave stays as it is")
}
