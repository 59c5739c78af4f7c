// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components_test

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/components"
	"github.com/talos-proxmox/talos-proxmox/internal/deploykeyenv"
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
		for variable, want := range map[string]any{
			deploykeyenv.API: "https://git.example.com/api/v1", deploykeyenv.Repository: "lab/demo",
			deploykeyenv.Key: m.outputs["publicKey"], deploykeyenv.LastToken: "t0ken",
		} {
			assert.Equal(t, want, environment[resource.PropertyKey(variable)].V, "a secret within a secret is a change to the genuine plugin")
		}
		assert.Regexp(t, `^talos-proxmox test SHA256:.{8}$`, environment[deploykeyenv.Title].StringValue())
		for field, want := range map[resource.PropertyKey]string{
			"create": "tpx deploy-key add", "update": "tpx deploy-key add", "delete": "tpx deploy-key remove",
		} {
			assert.Equal(t, want, key.Inputs[field].StringValue())
		}
		assert.True(t, m.Register("flux-registration").GetDeleteBeforeReplace())
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
