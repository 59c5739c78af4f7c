// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"context"
	"os"
	"path/filepath"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/controller"
	"github.com/talos-proxmox/talos-proxmox/components/internal/talos"
	"github.com/talos-proxmox/talos-proxmox/internal/preflight"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// ClusterType is the token of [Cluster].
const ClusterType = "talos-proxmox:components:Cluster"

// ClusterArgs describe a whole cluster, from Proxmox VE to git.
type ClusterArgs struct {
	// Config is the cluster; what is left out gets its default, and the cluster's name is that of the
	// component when it is left out. Plain: it decides how many resources there are.
	Config spec.Config
	// Directory is what files in Config are relative to, and where charts are cached; the working directory
	// when empty.
	Directory string
	// Charts keeps chart archives; [ProjectCharts] of Directory when nil.
	Charts *ChartCache
	// SecretValues are values of Config that resources must treat as secrets wherever they stand, although
	// nothing says that they are secret, such as a VM's description that a stack wrote as secure.
	SecretValues []string

	// Credentials that other resources produce, in place of those in Config.
	ProxmoxAPIToken      pulumi.StringInput `pulumi:"proxmoxApiToken"`
	ProxmoxPassword      pulumi.StringInput `pulumi:"proxmoxPassword"`
	ProxmoxSSHPrivateKey pulumi.StringInput `pulumi:"proxmoxSshPrivateKey"`
	ProxmoxSSHPassword   pulumi.StringInput `pulumi:"proxmoxSshPassword"`
	GitPassword          pulumi.StringInput `pulumi:"gitPassword"`
	GitPrivateKey        pulumi.StringInput `pulumi:"gitPrivateKey"`
	GitRegistrationToken pulumi.StringInput `pulumi:"gitRegistrationToken"`
	AgeKey               pulumi.StringInput `pulumi:"ageKey"`
}

// Cluster registers a Talos cluster on Proxmox VE that git manages: images, VMs, Talos and the GitOps controller, in
// the right order and with every check. Edits that would lose data or quorum are refused; what takes a node
// down waits for its turn; a node that goes is drained and leaves etcd first.
type Cluster struct {
	pulumi.ResourceState

	// Kubeconfig of an administrator, a secret. It is known only once the cluster is healthy, so that
	// whatever uses it waits.
	Kubeconfig pulumi.StringOutput `pulumi:"kubeconfig"`
	// Talosconfig of an administrator, a secret; known as soon as the cluster's secrets are.
	Talosconfig pulumi.StringOutput `pulumi:"talosconfig"`
	// Endpoint is the URL of the Kubernetes API.
	Endpoint pulumi.StringOutput `pulumi:"endpoint"`
	// DeployKey is the public key to allow read access to the repository; empty without an SSH key.
	DeployKey pulumi.StringOutput `pulumi:"deployKey"`
	// AgeRecipient is what secrets in the repository are encrypted for; empty without SOPS.
	AgeRecipient pulumi.StringOutput `pulumi:"ageRecipient"`

	// Ready exists once the cluster was found healthy. Depend on it; its outputs say nothing.
	Ready pulumi.Resource
	// Nodes are the nodes' VMs by name.
	Nodes map[string]*ProxmoxNode
}

// Check finds everything that is wrong with the cluster before anything is registered; [NewCluster] does the
// same. The error is a [*spec.InvalidError] that names every problem.
func (a *ClusterArgs) Check(ctx context.Context, name string) error {
	if a == nil {
		return errNoArgs("cluster", name)
	}
	_, err := a.check(ctx, a.config(name))

	return err
}

func (a *ClusterArgs) check(ctx context.Context, cfg spec.Config) (*talos.Checked, error) {
	cfg.Proxmox = withInputs(cfg.Proxmox, proxmoxInputs{a.ProxmoxAPIToken, a.ProxmoxPassword, a.ProxmoxSSHPrivateKey, a.ProxmoxSSHPassword})
	cfg.GitOps = a.gitCredentials().Fill(cfg.GitOps)

	return talos.Check(ctx, talos.Request{
		Name: *cfg.Cluster.Name, Request: preflight.Request{Config: cfg, Charts: a.charts().cache, ReadFile: a.readFile, GitOps: true},
	})
}

// config returns the complete configuration.
func (a *ClusterArgs) config(name string) spec.Config {
	cfg := a.Config
	if cfg.Cluster.Name == nil {
		cfg.Cluster.Name = &name
	}

	return cfg.WithDefaults()
}

func (a *ClusterArgs) charts() ChartCache {
	if a.Charts != nil {
		return *a.Charts
	}

	return ProjectCharts(a.directory())
}

func (a *ClusterArgs) directory() string {
	if a.Directory == "" {
		return "."
	}

	return a.Directory
}

// readFile reads a file that the configuration names.
func (a *ClusterArgs) readFile(path string) ([]byte, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.directory(), path)
	}

	return os.ReadFile(path)
}

// gitCredentials returns the credentials for git that are given as inputs.
func (a *ClusterArgs) gitCredentials() controller.Credentials {
	return controller.Credentials{
		Password: a.GitPassword, PrivateKey: a.GitPrivateKey, RegistrationToken: a.GitRegistrationToken, AgeKey: a.AgeKey,
	}
}
