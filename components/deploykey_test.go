// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components_test

import (
	"encoding/json"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/components"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// registeredAt follows a repository whose host is told of the key.
func registeredAt(kind, url string) spec.GitOps {
	g := sshGitOps()
	g.Git.URL = &url
	g.Git.Auth.Register = &spec.DeployKeyHost{Kind: kind, Token: spec.NewSecret("t0ken")}

	return g
}

func TestDeployKeyIsRegisteredForReading(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		kind, url, token, version, provider string
		want                                map[string]any
		config                              map[string]any
	}{
		"GitHub": {
			"github", "ssh://git@github.com/lab/demo.git", "github:index/repositoryDeployKey:RepositoryDeployKey",
			components.GitHubProviderVersion, "flux-registration-github",
			map[string]any{"repository": "demo", "readOnly": true}, map[string]any{"owner": "lab"},
		},
		"GitHub Enterprise": {
			"github", "ssh://git@git.example.com/lab/demo", "github:index/repositoryDeployKey:RepositoryDeployKey",
			components.GitHubProviderVersion, "flux-registration-github", map[string]any{"readOnly": true},
			map[string]any{"baseUrl": "https://git.example.com/"},
		},
		"GitLab": {
			"gitlab", "ssh://git@git.example.com/lab/group/demo.git", "gitlab:index/deployKey:DeployKey",
			components.GitLabProviderVersion, "flux-registration-gitlab",
			map[string]any{"project": "lab/group/demo", "canPush": false}, map[string]any{"baseUrl": "https://git.example.com/api/v4/"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			m, err := handOver(t, false, registeredAt(c.kind, c.url))
			require.NoError(t, err)

			key, ok := m.Get("flux-registration")
			require.True(t, ok)
			assert.Equal(t, c.token, key.TypeToken)
			assert.Equal(t, c.version, m.Register("flux-registration").GetVersion())
			assert.Equal(t, m.outputs["publicKey"], key.Inputs["key"].StringValue())
			for field, want := range c.want {
				assert.Equal(t, want, key.Inputs[resource.PropertyKey(field)].V, field)
			}
			assert.Regexp(t, `^talos-proxmox test SHA256:.{8}$`, key.Inputs["title"].StringValue())
			provider, ok := m.Get(c.provider)
			require.True(t, ok)
			assert.True(t, provider.Inputs["token"].IsSecret())
			for field, want := range c.config {
				assert.Equal(t, want, provider.Inputs[resource.PropertyKey(field)].V, field)
			}
			assert.Contains(t, m.Register("flux-registration").GetProvider(), "::"+c.provider+"::")
			for _, outside := range []string{"flux-registration", c.provider} {
				assert.Empty(t, m.Register(outside).GetDeletedWith(), "%s does not go with the cluster", outside)
				assert.NotContains(t, m.Register(outside).GetParent(), components.FluxBootstrapType, outside)
			}
			assert.Contains(t, m.Register("flux-release").GetDependencies(), "urn:pulumi:stack::project::"+c.token+"::flux-registration",
				"the host knows the key before Flux uses it")
		})
	}
}

func TestDeployKeyOfGiteaIsACommandThatUndoesItself(t *testing.T) {
	t.Parallel()

	for _, kind := range []string{"gitea", "forgejo"} {
		m, err := handOver(t, false, registeredAt(kind, "ssh://git@git.example.com:2222/lab/demo.git"))
		require.NoError(t, err)

		key, ok := m.Get("flux-registration")
		require.True(t, ok)
		assert.Equal(t, "command:local:Command", key.TypeToken)
		require.True(t, key.Inputs["environment"].IsSecret())
		environment := key.Inputs["environment"].SecretValue().Element.ObjectValue()
		assert.Equal(t, "https://git.example.com/api/v1/repos/lab/demo/keys", environment["URL"].StringValue())
		assert.False(t, environment["TOKEN"].IsSecret(), "the genuine plugin takes a secret within a secret for a change")
		var body map[string]any
		require.NoError(t, json.Unmarshal([]byte(environment["BODY"].StringValue()), &body))
		assert.Equal(t, m.outputs["publicKey"], body["key"])
		assert.Equal(t, true, body["read_only"])
		assert.Regexp(t, `^talos-proxmox test SHA256:.{8}$`, body["title"])
		for _, script := range []string{"create", "update", "delete"} {
			assert.NotContains(t, key.Inputs[resource.PropertyKey(script)].StringValue(), "t0ken")
		}
		assert.Equal(t, []string{"environment"}, m.Register("flux-registration").GetAdditionalSecretOutputs())
		assert.Empty(t, m.Register("flux-registration").GetDeletedWith())
	}
}

func TestDeployKeyWithArgoCD(t *testing.T) {
	t.Parallel()

	m, err := handToArgo(t, false, registeredAt("gitlab", "ssh://git@git.example.com/lab/demo.git"))
	require.NoError(t, err)
	key, ok := m.Get("argo-registration")
	require.True(t, ok)
	assert.Equal(t, m.outputs["publicKey"], key.Inputs["key"].StringValue())
}
