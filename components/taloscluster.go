// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"context"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/talos"
	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/preflight"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// TalosClusterType is the token of [TalosCluster]. Changing it replaces every cluster.
const TalosClusterType = "talos-proxmox:components:TalosCluster"

// TalosClusterArgs describe one cluster. It knows addresses and roles, not where machines come from: it works
// for any machine that waits in Talos's maintenance mode.
type TalosClusterArgs struct {
	// Config is the whole cluster; what is left out gets its default. Every node needs a static address.
	// Plain: it decides how many resources there are.
	Config spec.Config
	// Secrets of the cluster; made here when nil. Make them first, with [NewTalosSecrets], for VMs that are
	// to have [TalosSecrets.VMHooks].
	Secrets *TalosSecrets
	// Machines are the machines by node name: each must exist before the node's configuration is applied, and
	// when it is replaced its configuration is applied again.
	Machines map[string]pulumi.Resource
	// MachineIDs are texts by node name that change when the node's machine is another one, such as
	// [ProxmoxNode.MachineID]: then its configuration is applied again, after what the earlier machine left in
	// etcd and Kubernetes was removed. It sees a machine that was lost and recreated, which Machines does not.
	MachineIDs map[string]pulumi.StringInput `pulumi:"machineIds"`
	// Installers are installer images by node name, for machines that boot something else than their variant
	// of Config.Images; such a node is upgraded when its version of Talos differs. Every other node has the
	// factory's installer of its variant, and is upgraded when that differs too.
	Installers map[string]string
	// Charts keeps the archives of the charts that the cluster gets at day 0: [ProjectCharts].
	Charts ChartCache
	// ReadFile reads a file relative to the project directory; needed where patches or manifests are files.
	ReadFile func(string) ([]byte, error)
}

// Check finds everything that is wrong with the cluster, Talos's own rules included, before anything is
// registered; [NewTalosCluster] does the same. It renders every node's configuration with throw-away secrets.
// Machines need not be there yet.
func (a *TalosClusterArgs) Check(ctx context.Context, name string) error {
	if a == nil {
		return errNoArgs("cluster", name)
	}
	_, err := a.check(ctx, name)

	return err
}

func (a *TalosClusterArgs) check(ctx context.Context, name string) (*talos.Checked, error) {
	return talos.Check(ctx, talos.Request{
		Name: name, Request: preflight.Request{
			Config: a.Config.WithDefaults(), Installers: a.Installers, Charts: a.Charts.cache, ReadFile: a.ReadFile,
		},
	})
}

// TalosCluster is a running Talos cluster.
type TalosCluster struct {
	pulumi.ResourceState

	// Kubeconfig of an administrator, a secret. It is known only once the cluster is healthy, so that
	// whatever uses it waits.
	Kubeconfig pulumi.StringOutput `pulumi:"kubeconfig"`
	// Talosconfig of an administrator, a secret; known as soon as the cluster's secrets are.
	Talosconfig pulumi.StringOutput `pulumi:"talosconfig"`
	// Endpoint is the URL of the Kubernetes API.
	Endpoint pulumi.StringOutput `pulumi:"endpoint"`

	// Ready exists once the cluster was found healthy. Depend on it; its outputs say nothing.
	Ready pulumi.Resource

	// start says when something may be installed in the cluster.
	start talos.Start
}

// NewTalosCluster registers a cluster: its secrets, every node's configuration, etcd's bootstrap on the first
// control plane, the administrator's credentials and the gate that opens when all nodes are healthy. The
// configuration is checked with Talos's own rules before anything is registered; the error is a
// [*spec.InvalidError] that names every problem. The name must be unique among the program's clusters.
func NewTalosCluster(
	ctx *pulumi.Context, name string, args *TalosClusterArgs, opts ...pulumi.ResourceOption,
) (*TalosCluster, error) {
	if args == nil {
		return nil, errNoArgs("cluster", name)
	}
	checked, err := args.check(ctx.Context(), name)
	if err != nil {
		return nil, err
	}

	return newTalosCluster(ctx, name, args, checked, opts...)
}

// newTalosCluster registers a cluster that was checked.
func newTalosCluster(
	ctx *pulumi.Context, name string, args *TalosClusterArgs, checked *talos.Checked, opts ...pulumi.ResourceOption,
) (*TalosCluster, error) {
	cfg := args.Config.WithDefaults()
	if err := validateMachines(name, cfg, args.Machines); err != nil {
		return nil, err
	}
	if args.Secrets != nil && args.Secrets.session.Name != name {
		return nil, invalid("cluster "+name, "secrets", fmt.Sprintf("have the name %q: give both components the same name, "+
			"by which hooks find in the state that the cluster was bootstrapped", args.Secrets.session.Name))
	}
	c := &TalosCluster{}
	if err := ctx.RegisterComponentResource(TalosClusterType, name, c, opts...); err != nil {
		return nil, fmt.Errorf("registering cluster %q: %w", name, err)
	}
	secrets := args.Secrets
	if secrets == nil {
		made, err := NewTalosSecrets(ctx, name, &TalosSecretsArgs{Config: cfg}, pulumi.Parent(c))
		if err != nil {
			return nil, err
		}
		secrets = made
	}
	built, err := talos.Register(&talos.Build{
		Session: secrets.session, Config: cfg, Name: name, Parent: c,
		Secrets: secrets.secrets, Checked: checked, Machines: args.Machines, MachineIDs: args.MachineIDs,
	})
	if err != nil {
		return nil, err
	}
	c.start = built.Start
	c.Kubeconfig, c.Ready, c.Talosconfig = built.Kubeconfig, built.Ready, secrets.Talosconfig
	c.Endpoint = pulumi.String(cfg.Endpoint()).ToStringOutput()

	return c, ctx.RegisterResourceOutputs(c, pulumi.Map{
		"endpoint":    built.Endpoint,
		"kubeconfig":  c.Kubeconfig,
		"talosconfig": c.Talosconfig,
	})
}

// validateMachines finds nodes without a machine, where machines are given.
func validateMachines(name string, cfg spec.Config, machines map[string]pulumi.Resource) error {
	var problems check.List
	for _, n := range cfg.Nodes {
		if machines != nil && machines[n.Name] == nil {
			problems.Addf(check.Join("machines", n.Name), "there is no machine for this node")
		}
	}

	return problems.Err("cluster " + name)
}
