// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/internal/rules"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// TalosClusterType is the token of [TalosCluster]. Changing it replaces every cluster.
const TalosClusterType = "talos-proxmox:components:TalosCluster"

// TalosClusterArgs describe one cluster. It knows addresses and roles, not where machines come from:
// it works for any machine that waits in Talos's maintenance mode.
type TalosClusterArgs struct {
	// Config is the whole cluster; what is left out gets its default. Every node needs a static
	// address. Plain: it decides how many resources there are.
	Config spec.Config
	// Secrets of the cluster; made here when nil. Make them first, with [NewTalosSecrets], where the
	// machines are to be guarded by [TalosSecrets.Guard].
	Secrets *TalosSecrets
	// Machines are the machines by node name: each must exist before the node's configuration is
	// applied, and when it is replaced its configuration is applied anew.
	Machines map[string]pulumi.Resource
	// Installers are installer images by node name, for machines that boot something else than their
	// variant of Config.Images; such a node is upgraded when its version of Talos differs. Every other
	// node has the factory's installer of its variant, and is upgraded when that differs too.
	Installers map[string]string
	// Charts keeps the archives of the charts that the cluster gets at day 0: [ProjectCharts].
	Charts ChartCache
	// ReadFile reads a file relative to the project directory; needed where patches or manifests are
	// files.
	ReadFile func(string) ([]byte, error)

	checked *checkedCluster
}

// checkedCluster is what configurations and day-0 manifests are made from.
type checkedCluster struct {
	in  machineconfig.Input
	day manifests.Input
	// schematics by node name; missing where only the version of Talos counts.
	schematics map[string]string
}

// Check finds everything that is wrong with the cluster, Talos's own rules included, before anything
// is registered; [NewTalosCluster] does the same. It renders every node's configuration with throw-away
// secrets and remembers what it made. Machines need not be there yet.
func (a *TalosClusterArgs) Check(ctx context.Context, name string) error {
	checked, err := checkTalosCluster(ctx, name, a.Config.WithDefaults(), a)
	if err != nil {
		return err
	}
	a.checked = checked

	return nil
}

// TalosCluster is a running Talos cluster.
type TalosCluster struct {
	pulumi.ResourceState

	// Kubeconfig of an administrator, a secret. It is known only once the cluster is healthy, so
	// that whatever uses it waits.
	Kubeconfig pulumi.StringOutput `pulumi:"kubeconfig"`
	// Talosconfig of an administrator, a secret; known as soon as the cluster's secrets are.
	Talosconfig pulumi.StringOutput `pulumi:"talosconfig"`
	// Endpoint is the URL of the Kubernetes API.
	Endpoint pulumi.StringOutput `pulumi:"endpoint"`
	// Ready exists once the cluster was found healthy. Depend on it; its outputs say nothing.
	Ready pulumi.Resource

	config  spec.Config
	secrets *TalosSecrets
	// fresh says that the cluster is created in this run.
	fresh atomic.Bool
	taken runSnapshots
	// configs are the nodes' configurations by name, as they become known during the run.
	configs sync.Map
}

// NewTalosCluster registers a cluster: its secrets, every node's configuration, etcd's bootstrap on
// the first control plane, the administrator's credentials and the gate that opens when all nodes
// are healthy. The configuration is checked with Talos's own rules before anything is registered;
// the error is a [*spec.InvalidError] that names every problem. The name must be unique among the
// program's clusters.
func NewTalosCluster(
	ctx *pulumi.Context, name string, args *TalosClusterArgs, opts ...pulumi.ResourceOption,
) (*TalosCluster, error) {
	cfg := args.Config.WithDefaults()
	if args.checked == nil {
		if err := args.Check(ctx.Context(), name); err != nil {
			return nil, err
		}
	}
	in, day := args.checked.in, args.checked.day
	if err := validateMachines(name, cfg, args.Machines); err != nil {
		return nil, err
	}

	c := &TalosCluster{config: cfg, secrets: args.Secrets}
	if err := ctx.RegisterComponentResource(TalosClusterType, name, c, opts...); err != nil {
		return nil, fmt.Errorf("registering cluster %q: %w", name, err)
	}

	if c.secrets == nil {
		made, err := NewTalosSecrets(ctx, name, cfg, pulumi.Parent(c))
		if err != nil {
			return nil, err
		}
		c.secrets = made
	}
	c.Talosconfig = c.secrets.Talosconfig
	list, err := c.manifestsWithKeptCertificates(ctx, name, day, in.Manifests)
	if err != nil {
		return nil, err
	}
	forms, err := c.forms(ctx, name)
	if err != nil {
		return nil, err
	}
	version, err := c.kubernetes(ctx, name)
	if err != nil {
		return nil, err
	}
	applies, digests, err := c.applyConfigurations(ctx, name, in, list, args.Machines, []pulumi.Resource{forms, version})
	if err != nil {
		return nil, err
	}
	if err := c.bootstrapAndOpen(ctx, name, args, applies, digests, list); err != nil {
		return nil, err
	}
	c.Endpoint = pulumi.String(cfg.Endpoint()).ToStringOutput()

	return c, ctx.RegisterResourceOutputs(c, pulumi.Map{
		"endpoint":    c.Endpoint,
		"kubeconfig":  c.Kubeconfig,
		"talosconfig": c.Talosconfig,
	})
}

// bootstrapAndOpen registers what comes after the nodes have their configuration.
func (c *TalosCluster) bootstrapAndOpen(
	ctx *pulumi.Context, name string, args *TalosClusterArgs,
	applies map[string]*machine.ConfigurationApply, digests pulumi.StringMap, manifests pulumi.Output,
) error {
	before := make([]pulumi.Resource, 0, len(applies)+1)
	for _, n := range c.config.Nodes {
		before = append(before, applies[n.Name])
	}
	if !spec.Or(c.config.Cluster.Adopted, false) {
		bootstrap, err := c.bootstrap(ctx, name, applies)
		if err != nil {
			return err
		}
		before = append(before, bootstrap)
	}

	members, err := c.members(ctx, name, before)
	if err != nil {
		return err
	}
	upgraded, err := c.upgrades(ctx, name, args, applies, members)
	if err != nil {
		return err
	}
	done := append(append(upgraded, members), before...)
	edited, objects, err := c.editManifests(ctx, name, manifests, done)
	if err != nil {
		return err
	}
	ready, err := c.ready(ctx, name, digests, objects, append(done, edited), args.Machines)
	if err != nil {
		return err
	}
	c.Ready = ready
	if err := c.openKubeconfig(ctx, name, before, ready); err != nil {
		return err
	}

	return c.storeCredentials(ctx, name)
}

// checkTalosCluster finds everything that is wrong before anything is registered.
func checkTalosCluster(
	ctx context.Context, name string, cfg spec.Config, args *TalosClusterArgs,
) (*checkedCluster, error) {
	var problems check.List
	rules.Check(cfg, &problems)
	if err := problems.Err("cluster " + name); err != nil {
		return nil, err //nolint:wrapcheck // says everything
	}

	day := manifests.Input{Config: cfg, Charts: args.Charts, ReadFile: args.ReadFile}
	day, list, err := dayZero(ctx, day)
	if err != nil {
		return nil, fmt.Errorf("cluster %q: %w", name, err)
	}
	software, err := softwareFor(cfg, args)
	if err != nil {
		return nil, fmt.Errorf("cluster %q: %w", name, err)
	}
	in := machineconfig.Input{Config: cfg, Manifests: list, Installer: software.installers, ReadFile: args.ReadFile}
	if in.Config.Manifests.Extra, err = manifests.ExtraURLs(cfg); err != nil {
		return nil, fmt.Errorf("cluster %q: %w", name, err)
	}
	machineconfig.Check(in, &problems)

	return &checkedCluster{in: in, day: day, schematics: software.schematics}, problems.Err("cluster " + name)
}

// validateMachines finds nodes without a machine, where machines are given.
func validateMachines(name string, cfg spec.Config, machines map[string]pulumi.Resource) error {
	var problems check.List
	for _, n := range cfg.Nodes {
		if machines != nil && machines[n.Name] == nil {
			problems.Addf(check.Join("machines", n.Name), "there is no machine for this node")
		}
	}

	return problems.Err("cluster " + name) //nolint:wrapcheck // says everything
}

// clusterOf is what operations need to know about the cluster.
func clusterOf(cfg spec.Config) cluster.Cluster {
	c := cluster.Cluster{
		Name:           spec.Or(cfg.Cluster.Name, ""),
		SkipKubernetes: spec.Or(cfg.Lifecycle.SkipKubernetesChecks, spec.Or(cfg.CNI.Name, "") == "none"),
		KubeProxy:      cfg.KubeProxyEnabled(),
		CoreDNS:        cfg.Manifests.CoreDNS == nil || !spec.Or(cfg.Manifests.CoreDNS.Disabled, false),
	}
	for _, n := range cfg.Nodes {
		c.Members = append(c.Members, memberOf(n))
	}

	return c
}

// memberOf is what operations need to know about a node.
func memberOf(n spec.NamedNode) cluster.Member {
	return cluster.Member{
		Name: n.Name, Hostname: spec.Or(n.Hostname, n.Name),
		Address: n.Address().String(), ControlPlane: n.IsControlPlane(),
	}
}

// duration is a setting as Go's duration.
func duration(d *spec.Duration, fallback time.Duration) time.Duration {
	return time.Duration(spec.Or(d, spec.Duration(fallback)))
}
