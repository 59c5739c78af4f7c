// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// The keys of what a cluster's forms are remembered by.
const (
	formsContract   = "contract"
	formsEncryption = "etcdEncryption"
	formsTalos      = "talos"
	formsPods       = "podSubnets"
	formsServices   = "serviceSubnets"
	formsDomain     = "dnsDomain"
	formsNetwork    = "cni"
	formsInstall    = "ciliumInstall"
)

// forms registers the forms in which configurations are written and secrets are encrypted, which every
// configuration depends on. Raising the contract is an edit of its own: it is refused while a node runs
// an older Talos, in the preview already where the same edit raises talos.version. Another cipher, other
// networks of pods and services, another domain and another pod network than flannel, or flannel instead,
// are refused always: a cluster keeps those it was made with.
func (c *TalosCluster) forms(ctx *pulumi.Context, name string) (*pulumi.Stash, error) {
	refuse, err := registerPlanHook(ctx, TalosClusterType, name, "forms-step", refuseForms)
	if err != nil {
		return nil, err
	}
	look, err := registerHook(ctx, TalosClusterType, name, "forms", c.everyNodeUnderstands(ctx))
	if err != nil {
		return nil, err
	}
	stash, err := pulumi.NewStash(ctx, name+"-forms", &pulumi.StashArgs{Input: pulumi.StringMap{
		formsContract:   c.contract(),
		formsEncryption: pulumi.String(spec.Or(c.config.Kubernetes.EtcdEncryption, "secretbox")),
		formsTalos:      pulumi.String(spec.Or(c.config.Talos.Version, "")),
		formsPods:       pulumi.String(strings.Join(c.config.Cluster.PodSubnets, ", ")),
		formsServices:   pulumi.String(strings.Join(c.config.Cluster.ServiceSubnets, ", ")),
		formsDomain:     pulumi.String(spec.Or(c.config.Cluster.DNSDomain, "")),
		formsNetwork:    pulumi.String(spec.Or(c.config.CNI.Name, "")),
		formsInstall:    pulumi.String(ciliumInstall(c.config)),
	}}, pulumi.Parent(c), pulumi.DependsOn([]pulumi.Resource{c.secrets.resource}),
		pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeUpdate: []*pulumi.ResourceHook{refuse, look}}))
	if err != nil {
		return nil, fmt.Errorf("registering the configuration forms of cluster %q: %w", name, err)
	}

	return stash, nil
}

// ciliumInstall is how Cilium is installed, empty where there is none.
func ciliumInstall(cfg spec.Config) string {
	if !cfg.UsesCilium() {
		return ""
	}

	return spec.Or(cfg.CNI.Cilium.Install, "chart")
}

// contract is the one that the stack names, else the one that was pinned when the cluster was made.
func (c *TalosCluster) contract() pulumi.StringOutput {
	if said := spec.Or(c.config.Talos.Contract, ""); said != "" {
		return pulumi.String(said).ToStringOutput()
	}

	return c.secrets.contract
}

// refuseForms refuses what can be told from the inputs.
func refuseForms(args *pulumi.ResourceHookArgs) error {
	for _, form := range []struct {
		key          resource.PropertyKey
		setting, why string
	}{
		{formsEncryption, "kubernetes.etcdEncryption", "what etcd holds could not be read any more"},
		{formsPods, "cluster.podSubnets", "nodes and pods keep the addresses that they have"},
		{formsServices, "cluster.serviceSubnets", "services keep the addresses that they have, the cluster's own among them"},
		{formsDomain, "cluster.dnsDomain", "what runs keeps asking for the names that it knows"},
		{formsNetwork, "cni.name", "Talos never takes flannel away, nor does it bring it beside another pod network"},
		{formsInstall, "cni.cilium.install", "what one way installed the other cannot take over"},
	} {
		was, now := stashedText(args.OldInputs, form.key), stashedText(args.NewInputs, form.key)
		if form.key == formsNetwork && !slices.Contains([]string{was, now}, "flannel") {
			continue // Cilium may be handed over, as may none to it
		}
		if was != "" && now != "" && was != now {
			return fmt.Errorf("%s: was %s, is now %s: %s; write %s again", form.setting, was, now, form.why, was)
		}
	}
	old, raised, ok := raisedContract(args)
	if !ok {
		return nil
	}
	runs, err := versions.ParseTalos(stashedText(args.OldInputs, formsTalos))
	if err == nil && raised.NewerThan(runs.Contract()) {
		return fmt.Errorf("talos.contract: was %s, is now %s, and the nodes run Talos %s: edit talos.version first, "+
			"and talos.contract in a run after that", old, raised, runs)
	}

	return nil
}

// raisedContract says from where to where the edit raises the contract.
func raisedContract(args *pulumi.ResourceHookArgs) (from, to versions.Contract, raised bool) {
	from, errFrom := versions.ParseContract(stashedText(args.OldInputs, formsContract))
	to, errTo := versions.ParseContract(stashedText(args.NewInputs, formsContract))

	return from, to, errFrom == nil && errTo == nil && to.NewerThan(from)
}

// everyNodeUnderstands asks the nodes themselves, at up, before their configurations take new forms.
func (c *TalosCluster) everyNodeUnderstands(ctx *pulumi.Context) pulumi.ResourceHookFunction {
	patience := cluster.DefaultPollOptions(duration(c.config.Lifecycle.ReadyTimeout, 15*time.Minute))

	return func(args *pulumi.ResourceHookArgs) error {
		_, to, raised := raisedContract(args)
		if !raised {
			return nil
		}
		remote, err := c.secrets.access.open(ctx.Context())
		if err != nil {
			return err
		}
		if err := rollout.CheckContractSupported(ctx.Context(), remote, c.secrets.access.cluster, to, patience.Call); err != nil {
			return fmt.Errorf("talos.contract: %w", err)
		}

		return nil
	}
}
