// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"fmt"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/controller"
	"github.com/talos-proxmox/talos-proxmox/components/internal/node"
	"github.com/talos-proxmox/talos-proxmox/components/internal/stash"
	"github.com/talos-proxmox/talos-proxmox/components/internal/talos"
	"github.com/talos-proxmox/talos-proxmox/internal/gitops"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// clusterBuild registers a cluster.
type clusterBuild struct {
	ctx     *pulumi.Context
	name    string
	args    *ClusterArgs
	cfg     spec.Config
	cluster *Cluster
	// named remembers the cluster's name; everything else comes after it.
	named pulumi.Resource
	// providers are those for Proxmox VE and Talos; factories are the same by the factory of an image.
	providers pulumi.ResourceOption
	factories map[string]pulumi.ResourceOption
	// proxmox is how hooks reach Proxmox VE.
	proxmox node.API
	// record remembers the VMs of the nodes.
	record *node.Record
}

// register registers everything, in order.
func (b *clusterBuild) register(given *pulumi.ResourceOptions, checked *talos.Checked) error {
	if err := b.pinName(given); err != nil {
		return err
	}
	if err := b.registerProviders(); err != nil {
		return err
	}
	clusterName := *b.cfg.Cluster.Name
	secrets, err := NewTalosSecrets(b.ctx, clusterName, &TalosSecretsArgs{Config: b.cfg},
		b.child(b.providers, pulumi.DependsOn([]pulumi.Resource{b.named}))...)
	if err != nil {
		return err
	}
	b.proxmox = proxmoxAPI(b.cfg.Proxmox, b.args.ProxmoxAPIToken, b.args.ProxmoxPassword)
	secrets.session.Proxmox = b.proxmox
	if b.record, err = secrets.rememberMachines(); err != nil {
		return err
	}
	images, err := b.registerImages()
	if err != nil {
		return err
	}
	if err := b.registerNodes(images, secrets); err != nil {
		return err
	}
	machines, ids := map[string]pulumi.Resource{}, map[string]pulumi.StringInput{}
	for name, n := range b.cluster.Nodes {
		machines[name], ids[name] = n.VM, n.MachineID
	}
	cluster, err := newTalosCluster(b.ctx, clusterName, &TalosClusterArgs{
		Config: checked.DayZero.Config, Secrets: secrets, Machines: machines, MachineIDs: ids, Charts: b.args.charts(), ReadFile: b.args.readFile,
	}, checked, b.child(b.providers)...)
	if err != nil {
		return err
	}
	b.cluster.Kubeconfig, b.cluster.Talosconfig = cluster.Kubeconfig, cluster.Talosconfig
	b.cluster.Endpoint, b.cluster.Ready = cluster.Endpoint, cluster.Ready

	return b.installGitOps(cluster)
}

// child returns the options of a resource of the cluster. Its URN before there was a [Cluster] is an alias.
func (b *clusterBuild) child(more ...pulumi.ResourceOption) []pulumi.ResourceOption {
	return append([]pulumi.ResourceOption{
		pulumi.Parent(b.cluster), pulumi.Aliases([]pulumi.Alias{{NoParent: pulumi.Bool(true)}}),
	}, more...)
}

// formerly returns the option that finds a resource under the name it had before there was a [Cluster]. The
// engine replaces every VM of a provider that it does not find again.
func formerly(name string) pulumi.ResourceOption {
	return pulumi.Aliases([]pulumi.Alias{{Name: pulumi.String(name), NoParent: pulumi.Bool(true)}})
}

// pinName remembers the name of the cluster under a name that no setting changes, and refuses another, in the
// preview already.
func (b *clusterBuild) pinName(given *pulumi.ResourceOptions) error {
	named, err := stash.Remember(b.ctx, b.name+"-name", talos.ClusterName{Cluster: *b.cfg.Cluster.Name},
		stash.On[talos.ClusterName]{Plan: talos.RefuseRename}, pulumi.Parent(b.cluster), pulumi.DependsOn(given.DependsOn),
		formerly("identity"))
	b.named = named

	return err
}

// registerProviders registers the provider of Proxmox VE, and one of Talos for each factory.
func (b *clusterBuild) registerProviders() error {
	after := slices.Clip(b.child(pulumi.DependsOn([]pulumi.Resource{b.named})))
	proxmox, err := NewProxmoxProvider(b.ctx, b.name+"-proxmox", &ProxmoxProviderArgs{
		Settings: b.cfg.Proxmox, APIToken: b.args.ProxmoxAPIToken, Password: b.args.ProxmoxPassword,
		SSHPrivateKey: b.args.ProxmoxSSHPrivateKey, SSHPassword: b.args.ProxmoxSSHPassword,
	}, append(after, formerly("proxmox"))...)
	if err != nil {
		return err
	}
	b.factories = map[string]pulumi.ResourceOption{}
	for _, variant := range b.variants() {
		factory := b.factoryOf(variant)
		if b.factories[factory] != nil {
			continue
		}
		name := "talos"
		if len(b.factories) > 0 {
			name += "-" + variant
		}
		made, err := NewTalosProvider(b.ctx, b.name+"-"+name, &TalosProviderArgs{FactoryURL: factory}, append(after, formerly(name))...)
		if err != nil {
			return err
		}
		b.factories[factory] = pulumi.Providers(proxmox, made)
		if b.providers == nil {
			b.providers = b.factories[factory]
		}
	}

	return nil
}

// factoryOf returns the Image Factory of a variant.
func (b *clusterBuild) factoryOf(variant string) string {
	return *b.cfg.Images[variant].FactoryURL
}

// variants returns the image variants that nodes boot, in the order of the nodes.
func (b *clusterBuild) variants() []string {
	var variants []string
	seen := map[string]bool{}
	for _, n := range b.cfg.Nodes {
		variant := variantOf(n)
		if !seen[variant] {
			seen[variant] = true
			variants = append(variants, variant)
		}
	}

	return variants
}

// variantOf returns the image variant that a node boots.
func variantOf(n spec.NamedNode) string { return spec.Value(n.Node.Image) }

// registerImages registers the image variants, and returns them by name.
func (b *clusterBuild) registerImages() (map[string]*TalosImage, error) {
	images := map[string]*TalosImage{}
	clusterName := *b.cfg.Cluster.Name
	for _, variant := range b.variants() {
		img := b.cfg.Images[variant]
		made, err := NewTalosImage(b.ctx, clusterName+"-"+variant, &TalosImageArgs{
			ClusterName: clusterName, Variant: variant, TalosVersion: *b.cfg.Talos.Version, Image: img,
			Targets: ImageTargets(b.cfg, variant), Directory: b.args.directory(),
			Proxmox: b.cfg.Proxmox, ProxmoxAPIToken: b.args.ProxmoxAPIToken, ProxmoxPassword: b.args.ProxmoxPassword, own: b.ownVMs,
		}, b.child(b.factories[b.factoryOf(variant)], pulumi.DependsOn([]pulumi.Resource{b.named, b.record.Resource}))...)
		if err != nil {
			return nil, err
		}
		images[variant] = made
	}

	return images, nil
}

// ownVMs returns the nodes whose VMs an earlier run knew, or that were adopted.
func (b *clusterBuild) ownVMs() []spec.NamedNode {
	var own []spec.NamedNode
	for _, n := range b.cfg.Nodes {
		if *b.cfg.Cluster.Adopted || !b.record.IsNew(n.Name) {
			own = append(own, n)
		}
	}

	return own
}

// registerNodes registers a VM for each node.
func (b *clusterBuild) registerNodes(images map[string]*TalosImage, secrets *TalosSecrets) error {
	for _, n := range b.cfg.Nodes {
		file, err := images[variantOf(n)].FileID(*n.Host)
		if err != nil {
			return fmt.Errorf("node %q: %w", n.Name, err)
		}
		hooks, err := secrets.VMHooks(n.Name)
		if err != nil {
			return err
		}
		made, err := NewProxmoxNode(b.ctx, *b.cfg.Cluster.Name+"-"+n.Name, &ProxmoxNodeArgs{
			Cluster: b.cfg.Cluster, Node: n, Image: b.cfg.Image(n), ImageFileID: file,
			Proxmox: b.cfg.Proxmox, ProxmoxAPIToken: b.args.ProxmoxAPIToken, ProxmoxPassword: b.args.ProxmoxPassword,
			Lifecycle: b.cfg.Lifecycle, record: b.record, serves: secrets.session.Serves,
			// Not on the component: which of its children the SDK finds then depends on how far their registration is.
		}, b.child(b.providers, pulumi.DependsOn([]pulumi.Resource{secrets.secrets.Resource}), pulumi.ResourceHooks(hooks))...)
		if err != nil {
			return err
		}
		b.cluster.Nodes[n.Name] = made
	}

	return nil
}

// installGitOps installs the GitOps controller that the configuration asks for.
func (b *clusterBuild) installGitOps(cluster *TalosCluster) error {
	name := *b.cfg.Cluster.Name
	b.cluster.DeployKey, b.cluster.AgeRecipient = pulumi.String("").ToStringOutput(), pulumi.String("").ToStringOutput()
	recorded, kubeconfig, err := controller.RecordMode(b.ctx, name+"-gitops", b.cfg.GitOps, cluster.start, b.child()...)
	if err != nil {
		return err
	}
	// Registered whether or not it is used, so that turning GitOps off, or giving another key, does not lose
	// the only key to a repository.
	generated, err := controller.PersistAgeKey(b.ctx, name+"-age", b.child()...)
	if err != nil {
		return err
	}
	after := b.child(pulumi.DependsOn([]pulumi.Resource{recorded}))
	switch *b.cfg.GitOps.Provider {
	case gitops.Flux:
		key := b.args.AgeKey
		if key == nil {
			key = generated.Identity
		}
		made, err := NewFluxBootstrap(b.ctx, name+"-flux", &FluxBootstrapArgs{
			ClusterName: name, Kubeconfig: kubeconfig, Cluster: cluster, GitOps: b.cfg.GitOps, Charts: b.args.charts(),
			GitPassword: b.args.GitPassword, GitPrivateKey: b.args.GitPrivateKey, RegistrationToken: b.args.GitRegistrationToken,
			AgeKey: key,
		}, after...)
		if err != nil {
			return err
		}
		b.cluster.DeployKey, b.cluster.AgeRecipient = made.PublicKey, made.AgeRecipient
	case gitops.ArgoCD:
		made, err := NewArgoBootstrap(b.ctx, name+"-argocd", &ArgoBootstrapArgs{
			ClusterName: name, Kubeconfig: kubeconfig, Cluster: cluster, GitOps: b.cfg.GitOps, Charts: b.args.charts(),
			GitPassword: b.args.GitPassword, GitPrivateKey: b.args.GitPrivateKey, RegistrationToken: b.args.GitRegistrationToken,
		}, after...)
		if err != nil {
			return err
		}
		b.cluster.DeployKey = made.PublicKey
	}

	return nil
}
