// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components_test

import (
	"slices"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/components"
	"github.com/talos-proxmox/talos-proxmox/internal/pulumitest"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// constructors are all constructors of components, each for a cluster; without args when it is nil.
var constructors = map[string]func(ctx *pulumi.Context, cfg *spec.Config) error{
	"Cluster": func(ctx *pulumi.Context, cfg *spec.Config) error {
		var args *components.ClusterArgs
		if cfg != nil {
			without := *cfg // its charts would be fetched
			without.GitOps = spec.GitOps{}
			args = &components.ClusterArgs{Config: without, ProxmoxAPIToken: pulumi.String("u@pam!ci=one")}
		}
		_, err := components.NewCluster(ctx, "edge", args)

		return err
	},
	"TalosImage": func(ctx *pulumi.Context, cfg *spec.Config) error {
		var args *components.TalosImageArgs
		if cfg != nil {
			args = &components.TalosImageArgs{
				ClusterName: "edge", Variant: "default", TalosVersion: "v1.12.4", Image: cfg.Images["default"],
				Targets: []components.ImageTarget{{Host: "pve", Datastore: "local", Hosts: []string{"pve"}}},
			}
		}
		_, err := components.NewTalosImage(ctx, "edge", args)

		return err
	},
	"ProxmoxNode": func(ctx *pulumi.Context, cfg *spec.Config) error {
		var args *components.ProxmoxNodeArgs
		if cfg != nil {
			args = &components.ProxmoxNodeArgs{
				Cluster: cfg.Cluster, Node: cfg.Nodes[0], Proxmox: cfg.Proxmox, Image: cfg.Images["default"], Lifecycle: cfg.Lifecycle,
				ImageFileID: pulumi.String("local:iso/talos.iso"),
			}
		}
		_, err := components.NewProxmoxNode(ctx, "edge", args)

		return err
	},
	"TalosSecrets": func(ctx *pulumi.Context, cfg *spec.Config) error {
		var args *components.TalosSecretsArgs
		if cfg != nil {
			args = &components.TalosSecretsArgs{Config: *cfg}
		}
		_, err := components.NewTalosSecrets(ctx, "edge", args)

		return err
	},
	"TalosCluster": func(ctx *pulumi.Context, cfg *spec.Config) error {
		var args *components.TalosClusterArgs
		if cfg != nil {
			without := *cfg
			without.GitOps = spec.GitOps{}
			args = &components.TalosClusterArgs{Config: without}
		}
		_, err := components.NewTalosCluster(ctx, "edge", args)

		return err
	},
	"FluxBootstrap": func(ctx *pulumi.Context, cfg *spec.Config) error {
		var args *components.FluxBootstrapArgs
		if cfg != nil {
			args = &components.FluxBootstrapArgs{ClusterName: "edge", Kubeconfig: pulumi.String("it"), GitOps: cfg.GitOps}
		}
		_, err := components.NewFluxBootstrap(ctx, "edge", args)

		return err
	},
	"ArgoBootstrap": func(ctx *pulumi.Context, cfg *spec.Config) error {
		var args *components.ArgoBootstrapArgs
		if cfg != nil {
			g := spec.Clone(cfg.GitOps)
			if g.Provider != nil {
				g = spec.GitOps{Provider: spec.Ptr("argocd"), Git: spec.Git{URL: g.Git.URL}}
			}
			args = &components.ArgoBootstrapArgs{ClusterName: "edge", Kubeconfig: pulumi.String("it"), GitOps: g}
		}
		_, err := components.NewArgoBootstrap(ctx, "edge", args)

		return err
	},
	"ProxmoxProvider": func(ctx *pulumi.Context, cfg *spec.Config) error {
		var args *components.ProxmoxProviderArgs
		if cfg != nil {
			args = &components.ProxmoxProviderArgs{Settings: cfg.Proxmox}
		}
		_, err := components.NewProxmoxProvider(ctx, "edge", args)

		return err
	},
	"KubernetesProvider": func(ctx *pulumi.Context, cfg *spec.Config) error {
		var args *components.KubernetesProviderArgs
		if cfg != nil {
			args = &components.KubernetesProviderArgs{ClusterName: "edge", Kubeconfig: pulumi.String("it")}
		}
		_, err := components.NewKubernetesProvider(ctx, "edge", args)

		return err
	},
}

func TestConstructorsRefuseToBeCalledWithoutArgs(t *testing.T) {
	t.Parallel()
	for name, construct := range constructors {
		var r pulumitest.Recorder
		var err error
		require.NoError(t, r.Run(true, func(ctx *pulumi.Context) error {
			err = construct(ctx, nil)

			return nil
		}))
		var invalid *spec.InvalidError
		if assert.ErrorAs(t, err, &invalid, name) {
			assert.Equal(t, "args: is required: describe what is to be made", invalid.Problems[0].String(), name)
		}
		assert.Empty(t, r.Names(""), "%s: nothing is registered", name)
	}
}

// TestConstructorsFillInDefaults calls each constructor with what a user writes, and with every default written out: the
// same is registered, and what the caller gave stays as it was.
func TestConstructorsFillInDefaults(t *testing.T) {
	t.Parallel()
	cfg := oneNode()
	cfg.GitOps = spec.GitOps{Provider: spec.Ptr("flux"), Git: spec.Git{URL: spec.Ptr("https://git.example.com/lab/demo.git")}}
	given := spec.Clone(cfg)
	for name, construct := range constructors {
		registered := func(cfg spec.Config) map[string]any {
			answer := talosState(t, true)
			r := pulumitest.Recorder{State: func(args pulumi.MockResourceArgs) (string, resource.PropertyMap) {
				id, outputs := answer(args)
				if _, isVM := outputs["smbios"]; isVM {
					outputs["smbios"] = resource.NewPropertyValue(map[string]any{"uuid": "that of its creation"})
				}

				return id, outputs
			}}
			require.NoError(t, r.Run(true, func(ctx *pulumi.Context) error { return construct(ctx, &cfg) }), name)
			all := map[string]any{}
			for _, name := range r.Names("") {
				inputs := r.Register(name).GetObject().AsMap()
				delete(inputs, "smbios") // another one with each run
				if slices.Contains(r.Register(name).GetIgnoreChanges(), "input") {
					inputs = nil // made by chance, once
				}
				all[name] = inputs
			}

			return all
		}
		assert.Equal(t, registered(cfg), registered(cfg.WithDefaults()), name)
		assert.Equal(t, given, cfg, "%s leaves alone what it was given", name)
	}
}

// TestChecksKeepNothing holds that a configuration which is edited after a check is checked as it then is.
func TestChecksKeepNothing(t *testing.T) {
	t.Parallel()
	cluster := &components.ClusterArgs{Config: oneNode()}
	talos := &components.TalosClusterArgs{Config: oneNode()}
	for name, c := range map[string]struct {
		config *spec.Config
		check  func() error
	}{
		"Cluster":      {&cluster.Config, func() error { return cluster.Check(t.Context(), "edge") }},
		"TalosCluster": {&talos.Config, func() error { return talos.Check(t.Context(), "edge") }},
	} {
		require.NoError(t, c.check(), name)
		assert.Equal(t, oneNode(), *c.config, "%s: a check leaves the configuration alone", name)
		c.config.Talos.Version = spec.Ptr("v9.9.9")
		var invalid *spec.InvalidError
		require.ErrorAs(t, c.check(), &invalid, name)
		c.config.Talos.Version = nil
		require.NoError(t, c.check(), name)
	}
}
