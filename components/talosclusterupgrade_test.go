// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components_test

import (
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/components"
	"github.com/talos-proxmox/talos-proxmox/internal/pulumitest"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

func TestTalosClusterUpgradesNodesInOrder(t *testing.T) {
	t.Parallel()

	cfg := clusterConfig(3, 3)
	cfg.Lifecycle.MaxUnavailable = spec.Ptr(2)
	for _, preview := range []bool{true, false} {
		m, err := makeCluster(t, preview, cfg)
		require.NoError(t, err)

		version := urn("pulumi:index:Stash", "test-")
		for node, after := range map[string][]string{
			"ctrl-00": nil, "ctrl-01": {"ctrl-00"}, "ctrl-02": {"ctrl-01"},
			"work-00": {"ctrl-02"}, "work-01": {"ctrl-02"}, "work-02": {"ctrl-02", "work-00"},
		} {
			rpc := m.Register("test-" + node + "-version")
			require.NotNil(t, rpc, node)
			want := []string{
				urn("talos:machine/configurationApply:ConfigurationApply", "test-"+node), urn("pulumi:index:Stash", "test-members"),
				urn("pulumi:index:Stash", "test-default-image-edit"), version + "kubernetes",
			}
			for _, other := range after {
				want = append(want, version+other+"-version")
			}
			assert.ElementsMatch(t, want, rpc.GetDependencies(), node)
			assert.Equal(t, []string{
				"pulumi:index:Stash::test-" + node + "-version::plan", "pulumi:index:Stash::test-" + node + "-version::update",
			}, rpc.GetHooks().GetBeforeUpdate())
			assert.Empty(t, rpc.GetHooks().GetBeforeCreate(), "a new node is installed with its version")
			args, _ := m.Get("test-" + node + "-version")
			assert.Equal(t, "v1.12.4", args.Inputs["input"].ObjectValue()["talos"].StringValue())
			assert.Contains(t, m.Register("test-ready").GetDependencies(), version+node+"-version")
			assert.NotContains(t, m.Register("test-kubeconfig").GetDependencies(), version+node+"-version")
		}
	}
}

func TestTalosClusterUpgradesKubernetesBeforeItsConfigurations(t *testing.T) {
	t.Parallel()

	cfg := clusterConfig(3, 1)
	cfg.Kubernetes.Version = spec.Ptr("v1.34.1")
	for _, preview := range []bool{true, false} {
		m, err := makeCluster(t, preview, cfg)
		require.NoError(t, err)

		rpc := m.Register("test-kubernetes")
		require.NotNil(t, rpc)
		assert.Equal(t, []string{
			"pulumi:index:Stash::test-kubernetes::plan", "pulumi:index:Stash::test-kubernetes::update",
		}, rpc.GetHooks().GetBeforeUpdate())
		assert.Empty(t, rpc.GetHooks().GetBeforeDelete(), "a plain destroy must work")
		assert.Len(t, rpc.GetDependencies(), 2, "creation waits for the secrets and the edit's mark alone")
		assert.Contains(t, strings.Join(rpc.GetDependencies(), " "), "talos:machine/secrets:Secrets::test-secrets")
		args, _ := m.Get("test-kubernetes")
		assert.Equal(t, "v1.34.1", args.Inputs["input"].ObjectValue()["kubernetes"].StringValue())

		version := urn("pulumi:index:Stash", "test-kubernetes")
		for _, node := range []string{"ctrl-00", "ctrl-01", "ctrl-02", "work-00"} {
			apply := urn("talos:machine/configurationApply:ConfigurationApply", "test-"+node)
			assert.Contains(t, m.Register("test-"+node).GetDependencies(), version, node)
			assert.NotContains(t, m.Register("test-"+node).GetReplaceWith(), version, node)
			assert.Contains(t, m.Register("test-"+node+"-version").GetDependencies(), apply,
				"Talos is upgraded after the configurations, and so after Kubernetes")
		}
	}
}

func TestTalosClusterThatWasAdoptedIsLookedAtBeforeItsConfigurations(t *testing.T) {
	t.Parallel()

	bundle, err := theBundle()
	require.NoError(t, err)
	text, err := yaml.Marshal(bundle)
	require.NoError(t, err)
	cfg := clusterConfig(1, 0)
	cfg.Cluster.Adopted, cfg.Cluster.SecretsBundle = spec.Ptr(true), spec.Ptr(spec.NewSecret(string(text)))

	m, err := makeCluster(t, false, cfg)
	require.NoError(t, err)

	prefix := "talos::test::"
	assert.Equal(t, []string{"pulumi:index:Stash::test-kubernetes::create"}, m.Register("test-kubernetes").GetHooks().GetBeforeCreate())
	hooks := m.Register("test-ctrl-00").GetHooks()
	assert.Equal(t, []string{prefix + "heal/ctrl-00", prefix + "apply/ctrl-00"}, hooks.GetBeforeCreate(),
		"its nodes run already: one at a time reboots for its configuration")
	assert.Equal(t, []string{prefix + "applied/ctrl-00"}, hooks.GetAfterCreate())
}

func TestTalosClusterGuardsConfigurations(t *testing.T) {
	t.Parallel()

	for _, preview := range []bool{true, false} {
		m, err := makeCluster(t, preview, clusterConfig(1, 1))
		require.NoError(t, err)

		prefix := "talos::test::"
		for _, node := range []string{"ctrl-00", "work-00"} {
			hooks := m.Register("test-" + node).GetHooks()
			assert.Equal(t, []string{prefix + "heal/" + node}, hooks.GetBeforeCreate())
			assert.Empty(t, hooks.GetAfterCreate(), "a new node joins without a turn")
			assert.Equal(t, []string{prefix + "apply/" + node}, hooks.GetBeforeUpdate())
			assert.Equal(t, []string{prefix + "applied/" + node}, hooks.GetAfterUpdate())
			assert.Equal(t, []string{prefix + "apply-failed/" + node}, hooks.GetOnError())
		}
	}
}

// TestTalosClusterMarksEdits holds that what looks at nodes is updated by an edit that takes back another
// one, although its own value is the old one again.
func TestTalosClusterMarksEdits(t *testing.T) {
	t.Parallel()

	m, err := makeCluster(t, false, clusterConfig(1, 1))
	require.NoError(t, err)

	for stash, mark := range map[string]string{
		"test-kubernetes": "test-kubernetes-edit", "test-ctrl-00-version": "test-default-image-edit",
		"test-work-00-version": "test-default-image-edit", "test-ready": "test-edit",
	} {
		require.NotNil(t, m.Register(mark), mark)
		assert.NotNil(t, m.Register(mark).GetReplacementTrigger(), "a new edit makes a new one")
		args, _ := m.Get(stash)
		assert.Equal(t, mark+"-id", args.Inputs["input"].ObjectValue()["edit"].StringValue(), stash)
	}
}

func TestTalosSecretsGuardMachines(t *testing.T) {
	t.Parallel()

	r := &pulumitest.Recorder{State: talosState(t, false)}
	require.NoError(t, r.Run(false, func(ctx *pulumi.Context) error {
		for _, name := range []string{"blue", "green"} {
			s, err := components.NewTalosSecrets(ctx, name, &components.TalosSecretsArgs{Config: clusterConfig(1, 0)})
			if err != nil {
				return err
			}
			guard, err := s.VMHooks("ctrl-00")
			if err != nil {
				return err
			}
			if _, err := pulumi.NewStash(ctx, name+"-vm", &pulumi.StashArgs{Input: pulumi.String("")},
				pulumi.ResourceHooks(guard), pulumi.DependsOn([]pulumi.Resource{s})); err != nil {
				return err
			}
			_, err = s.VMHooks("nobody")
			assert.EqualError(t, err, `the cluster has no node "nobody"`)
		}

		return nil
	}))

	for _, name := range []string{"blue", "green"} {
		hooks := r.Register(name + "-vm").GetHooks()
		prefix := "talos::" + name + "::"
		assert.Equal(t, []string{prefix + "vm-enter/ctrl-00"}, hooks.GetBeforeUpdate())
		assert.Equal(t, []string{prefix + "vm-leave/ctrl-00"}, hooks.GetAfterUpdate())
		assert.Equal(t, []string{prefix + "vm-failed/ctrl-00"}, hooks.GetOnError())
	}
}

func TestTalosClusterMembers(t *testing.T) {
	t.Parallel()

	m, err := makeCluster(t, false, clusterConfig(1, 1))
	require.NoError(t, err)

	rpc := m.Register("test-members")
	require.NotNil(t, rpc)
	assert.Equal(t, []string{"pulumi:index:Stash::test-members::plan", "pulumi:index:Stash::test-members::update"}, rpc.GetHooks().GetBeforeUpdate())
	assert.Empty(t, rpc.GetHooks().GetBeforeDelete(), "a plain destroy must work")
	for _, node := range []string{"ctrl-00", "work-00"} {
		assert.Contains(t, rpc.GetDependencies(), urn("talos:machine/configurationApply:ConfigurationApply", "test-"+node),
			"who joins in the same run comes first")
	}
	args, _ := m.Get("test-members")
	assert.Equal(t, map[string]any{
		"ctrl-00": map[string]any{"address": "10.0.0.1", "hostname": "ctrl-00", "role": "controlplane"},
		"work-00": map[string]any{"address": "10.0.0.2", "hostname": "work-00", "role": "worker"},
	}, args.Inputs["input"].Mappable())
}
