// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/talos-proxmox/talos-proxmox/components"
	"github.com/talos-proxmox/talos-proxmox/internal/pulumitest"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// revealed returns the text of a secret; the test fails when it is none.
func revealed(t *testing.T, v resource.PropertyValue) string {
	t.Helper()
	require.True(t, v.IsSecret(), "%s is not a secret", v)

	return v.SecretValue().Element.StringValue()
}

func registerProvider(t *testing.T, preview bool, settings spec.Proxmox) pulumi.MockResourceArgs {
	t.Helper()
	var r pulumitest.Recorder
	require.NoError(t, r.Run(preview, func(ctx *pulumi.Context) error {
		_, err := components.NewProxmoxProvider(ctx, "proxmox", &components.ProxmoxProviderArgs{Settings: settings})

		return err
	}))
	args, ok := r.Get("proxmox")
	require.True(t, ok)

	return args
}

// privateKey returns an SSH key as ssh-keygen writes it.
func privateKey(t *testing.T) string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(key, "")
	require.NoError(t, err)

	return string(pem.EncodeToMemory(block))
}

func TestProxmoxProvider(t *testing.T) {
	t.Parallel()

	secret := func(value string) *spec.Secret { return spec.Ptr(spec.NewSecret(value)) }
	settings := spec.Proxmox{
		Endpoint: spec.Ptr("https://pve.example.com:8006/"), APIToken: secret("root@pam!ci=t0ken"), MinTLS: spec.Ptr("1.2"),
		SSH: &spec.SSH{
			Username: "root", PrivateKey: secret(privateKey(t)), Password: secret("passw0rd"),
			Nodes: map[string]string{"beta": "192.0.2.2:2222", "alpha": "192.0.2.1"},
		},
	}
	for _, preview := range []bool{true, false} {
		args := registerProvider(t, preview, settings)
		assert.Equal(t, "6.18.1", args.RegisterRPC.GetVersion(), "without it the newest plugin is taken")
		assert.Equal(t, "root@pam!ci=t0ken", revealed(t, args.Inputs["apiToken"]))
		assert.NotContains(t, args.Inputs, resource.PropertyKey("password"))
		assert.Equal(t, "https://pve.example.com:8006/", args.Inputs["endpoint"].StringValue())
		assert.Equal(t, "1.2", args.Inputs["minTls"].StringValue())
	}
}

func TestSSHCredentialsAreSecrets(t *testing.T) {
	t.Parallel()

	key := privateKey(t)
	args := registerProvider(t, false, spec.Proxmox{SSH: &spec.SSH{
		Username: "root", PrivateKey: spec.Ptr(spec.NewSecret(key)), Password: spec.Ptr(spec.NewSecret("passw0rd")),
		Nodes: map[string]string{"beta": "192.0.2.2:2222", "alpha": "192.0.2.1"},
	}})
	ssh := args.Inputs["ssh"]
	if ssh.IsSecret() { // a secret inside makes secrets of what is around it
		ssh = ssh.SecretValue().Element
	}
	text := ssh.ObjectValue()
	assert.Equal(t, key, revealed(t, text["privateKey"]))
	assert.Equal(t, "passw0rd", revealed(t, text["password"]))
	assert.Equal(t, []any{
		map[string]any{"name": "alpha", "address": "192.0.2.1"},
		map[string]any{"name": "beta", "address": "192.0.2.2", "port": 2222.0},
	}, text["nodes"].Mappable())
}

func TestInsecureIsAChoice(t *testing.T) {
	t.Parallel()

	insecure := func(settings spec.Proxmox) bool {
		v := registerProvider(t, false, settings).Inputs["insecure"]

		return v.IsBool() && v.BoolValue() || v.IsString() && v.StringValue() == "true"
	}
	assert.False(t, insecure(spec.Proxmox{}))
	assert.True(t, insecure(spec.Proxmox{Insecure: spec.Ptr(true)}))
}

func TestProxmoxProviderRefusesBadSettings(t *testing.T) {
	t.Parallel()

	var r pulumitest.Recorder
	err := r.Run(true, func(ctx *pulumi.Context) error {
		_, err := components.NewProxmoxProvider(ctx, "proxmox", &components.ProxmoxProviderArgs{Settings: spec.Proxmox{
			Endpoint: spec.Ptr("pve.example.com"), Password: spec.Ptr(spec.NewSecret("hunter2")),
			APIToken: spec.Ptr(spec.NewSecret("a@pam!b=c")), SSH: &spec.SSH{},
		}})

		return err
	})
	require.ErrorContains(t, err, `provider "proxmox": 4 problems
  proxmox.endpoint: "pve.example.com" is no address of a Proxmox API: write https://<host>:8006
  proxmox.password: is set beside an API token: keep one of them
  proxmox.ssh: needs a privateKey, a password, or agent: true
  proxmox.ssh.username: is required`)
	assert.NotContains(t, err.Error(), "hunter2")
}

func TestTalosProvider(t *testing.T) {
	t.Parallel()

	var r pulumitest.Recorder
	require.NoError(t, r.Run(false, func(ctx *pulumi.Context) error {
		if _, err := components.NewTalosProvider(ctx, "public", nil); err != nil {
			return err
		}
		_, err := components.NewTalosProvider(ctx, "own", &components.TalosProviderArgs{FactoryURL: "https://factory.example.com"})

		return err
	}))
	assert.Equal(t, "0.7.1", r.Register("public").GetVersion())
	public, _ := r.Get("public")
	assert.Empty(t, public.Inputs)
	own, _ := r.Get("own")
	assert.Equal(t, "https://factory.example.com", own.Inputs["imageFactoryUrl"].StringValue())
}
