// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve"
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos"

	"github.com/talos-proxmox/talos-proxmox/components/internal/controller"
	"github.com/talos-proxmox/talos-proxmox/components/internal/kube"
	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/image"
	"github.com/talos-proxmox/talos-proxmox/internal/rules"
	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

const (
	// ProxmoxProviderVersion is the version of the proxmoxve plugin that everything here was made for.
	ProxmoxProviderVersion = versions.ProxmoxPlugin
	// TalosProviderVersion is the version of the talos plugin that everything here was made for.
	TalosProviderVersion = versions.TalosPlugin
	// KubernetesProviderVersion is the version of the kubernetes plugin that everything here was made for.
	KubernetesProviderVersion = kube.ProviderVersion
	// GitHubProviderVersion is the version of the github plugin that deploy keys are registered with.
	GitHubProviderVersion = controller.GitHubProviderVersion
	// GitLabProviderVersion is the version of the gitlab plugin that deploy keys are registered with.
	GitLabProviderVersion = controller.GitLabProviderVersion
	// CommandProviderVersion is the version of the command plugin, which runs tpx for the keys of Gitea and Forgejo.
	CommandProviderVersion = controller.CommandProviderVersion
)

// ProxmoxProviderArgs say how Proxmox VE is reached.
type ProxmoxProviderArgs struct {
	// Settings are the endpoint and how it is reached. What they leave out comes from the provider's
	// environment variables (PROXMOX_VE_API_TOKEN, …).
	Settings spec.Proxmox
	// APIToken and Password are credentials that other resources produce, in place of those in Settings.
	APIToken pulumi.StringInput `pulumi:"apiToken"`
	Password pulumi.StringInput `pulumi:"password"`
	// SSHPrivateKey and SSHPassword are those of Settings.SSH, which must be there.
	SSHPrivateKey pulumi.StringInput `pulumi:"sshPrivateKey"`
	SSHPassword   pulumi.StringInput `pulumi:"sshPassword"`
}

// NewProxmoxProvider registers the provider that reaches Proxmox VE. Certificates are verified unless the
// settings say otherwise; credentials are secrets in the state.
func NewProxmoxProvider(
	ctx *pulumi.Context, name string, args *ProxmoxProviderArgs, opts ...pulumi.ResourceOption,
) (*proxmoxve.Provider, error) {
	if args == nil {
		return nil, errNoArgs("provider", name)
	}
	var l check.List
	settings := rules.CheckProxmox(withInputs(args.Settings, args.inputs()), &l)
	if args.Settings.SSH == nil && (args.SSHPrivateKey != nil || args.SSHPassword != nil) {
		l.Addf("proxmox.ssh", "is required with an SSH key or password: give the user at least")
	}
	if err := l.Err(fmt.Sprintf("provider %q", name)); err != nil {
		return nil, err
	}

	given := &proxmoxve.ProviderArgs{
		Endpoint:    pulumi.StringPtrFromPtr(settings.Endpoint),
		Insecure:    pulumi.Bool(*settings.Insecure),
		MinTls:      pulumi.StringPtrFromPtr(settings.MinTLS),
		Username:    pulumi.StringPtrFromPtr(settings.Username),
		ApiToken:    secretInput(args.APIToken, args.Settings.APIToken),
		Password:    secretInput(args.Password, args.Settings.Password),
		RandomVmIds: pulumi.Bool(false),
	}
	if args.Settings.SSH != nil {
		given.Ssh = sshArgs(args)
	}

	provider, err := proxmoxve.NewProvider(ctx, name, given, append(opts, pulumi.Version(ProxmoxProviderVersion))...)
	if err != nil {
		return nil, fmt.Errorf("registering the Proxmox provider %q: %w", name, err)
	}

	return provider, nil
}

// unknownToken takes the place of a token that another resource produces while settings are checked. It is a
// token's like any other: options that Proxmox VE allows to root@pam alone are refused with it.
const unknownToken = "unknown@pve!unknown=00000000-0000-0000-0000-000000000000"

// proxmoxInputs hold credentials that other resources produce.
type proxmoxInputs struct{ token, password, sshPrivateKey, sshPassword pulumi.StringInput }

func (a *ProxmoxProviderArgs) inputs() proxmoxInputs {
	return proxmoxInputs{a.APIToken, a.Password, a.SSHPrivateKey, a.SSHPassword}
}

// withInputs returns the settings as rules see them, with stand-ins for credentials that are not known yet.
func withInputs(p spec.Proxmox, given proxmoxInputs) spec.Proxmox {
	if given.token != nil {
		p.APIToken = spec.Ptr(spec.NewSecret(unknownToken))
	}
	if given.password != nil {
		p.Password = spec.Ptr(spec.NewSecret("unknown"))
	}
	if p.SSH != nil && (given.sshPrivateKey != nil || given.sshPassword != nil) {
		ssh := *p.SSH
		ssh.Password = spec.Ptr(spec.NewSecret("unknown"))
		p.SSH = &ssh
	}

	return p
}

// TalosProviderArgs say which Image Factory serves.
type TalosProviderArgs struct {
	// FactoryURL is the public one when empty. One provider serves one factory.
	FactoryURL string
}

// NewTalosProvider registers the provider that speaks to Talos nodes and to the Image Factory.
func NewTalosProvider(
	ctx *pulumi.Context, name string, args *TalosProviderArgs, opts ...pulumi.ResourceOption,
) (*talos.Provider, error) {
	given := &talos.ProviderArgs{}
	if args != nil && args.FactoryURL != "" && args.FactoryURL != image.DefaultFactory {
		given.ImageFactoryUrl = pulumi.StringPtr(args.FactoryURL)
	}

	provider, err := talos.NewProvider(ctx, name, given, append(opts, pulumi.Version(TalosProviderVersion))...)
	if err != nil {
		return nil, fmt.Errorf("registering the Talos provider %q: %w", name, err)
	}

	return provider, nil
}

// KubernetesProviderArgs say which cluster is reached.
type KubernetesProviderArgs struct {
	// ClusterName identifies the cluster: what is in it is not replaced when its kubeconfig changes.
	ClusterName string
	// Kubeconfig is kept secret. Give one that becomes known when the API is up, such as
	// [Cluster.Kubeconfig], since the plugin asks the API once and takes it for unreachable for the rest of
	// the run.
	Kubeconfig pulumi.StringInput `pulumi:"kubeconfig"`
}

// NewKubernetesProvider registers a provider for a cluster that this program makes.
func NewKubernetesProvider(
	ctx *pulumi.Context, name string, args *KubernetesProviderArgs, opts ...pulumi.ResourceOption,
) (*kubernetes.Provider, error) {
	if args == nil {
		return nil, errNoArgs("provider", name)
	}
	var l check.List
	if args.ClusterName == "" {
		l.Addf("clusterName", "is required: the name of the cluster that is reached")
	}
	if args.Kubeconfig == nil {
		l.Addf("kubeconfig", "is required: that of an administrator of the cluster")
	}
	if err := l.Err(fmt.Sprintf("provider %q", name)); err != nil {
		return nil, err
	}

	return kube.NewProvider(ctx, name, args.ClusterName, args.Kubeconfig, opts...)
}

// secretInput returns a credential as a secret: the input where there is one, else that of the settings.
func secretInput(input pulumi.StringInput, setting *spec.Secret) pulumi.StringPtrInput {
	switch {
	case input != nil:
		return kube.Secret(input).ToStringPtrOutput()
	case setting != nil:
		return kube.Secret(pulumi.String(setting.Reveal())).ToStringPtrOutput()
	default:
		return nil
	}
}

// sshArgs wraps what the plugin's schema does not mark as secret.
func sshArgs(given *ProxmoxProviderArgs) proxmoxve.ProviderSshArgs {
	ssh := given.Settings.SSH
	args := proxmoxve.ProviderSshArgs{
		Username:   pulumi.String(ssh.Username),
		PrivateKey: secretInput(given.SSHPrivateKey, ssh.PrivateKey),
		Password:   secretInput(given.SSHPassword, ssh.Password),
		Agent:      pulumi.Bool(spec.Value(ssh.Agent)),
	}
	var nodes proxmoxve.ProviderSshNodeArray
	for _, host := range slices.Sorted(maps.Keys(ssh.Nodes)) {
		node := proxmoxve.ProviderSshNodeArgs{Name: pulumi.String(host), Address: pulumi.String(ssh.Nodes[host])}
		if address, port, err := net.SplitHostPort(ssh.Nodes[host]); err == nil {
			if number, err := strconv.Atoi(port); err == nil {
				node.Address, node.Port = pulumi.String(address), pulumi.Int(number)
			}
		}
		nodes = append(nodes, node)
	}
	if len(nodes) > 0 {
		args.Nodes = nodes
	}

	return args
}
