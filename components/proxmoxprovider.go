// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/image"
	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

const (
	// ProxmoxProviderVersion is the version of the proxmoxve plugin that everything here was made for.
	ProxmoxProviderVersion = versions.ProxmoxPlugin
	// TalosProviderVersion is the version of the talos plugin that everything here was made for.
	TalosProviderVersion = versions.TalosPlugin
)

// NewProxmoxProvider registers the provider that reaches Proxmox VE. What the settings leave out
// comes from the provider's environment variables (PROXMOX_VE_API_TOKEN, …). Certificates are
// verified unless the settings say otherwise; credentials are secrets in the state.
func NewProxmoxProvider(
	ctx *pulumi.Context, name string, settings spec.Proxmox, opts ...pulumi.ResourceOption,
) (*proxmoxve.Provider, error) {
	var l check.List
	validateProxmox(settings, &l)
	if err := l.Err(fmt.Sprintf("provider %q", name)); err != nil {
		return nil, err
	}

	args := &proxmoxve.ProviderArgs{
		Endpoint:    pulumi.StringPtrFromPtr(settings.Endpoint),
		Insecure:    pulumi.Bool(spec.Or(settings.Insecure, false)),
		MinTls:      pulumi.StringPtrFromPtr(settings.MinTLS),
		Username:    pulumi.StringPtrFromPtr(settings.Username),
		ApiToken:    secretInput(settings.APIToken),
		Password:    secretInput(settings.Password),
		RandomVmIds: pulumi.Bool(false),
	}
	if settings.SSH != nil {
		args.Ssh = sshArgs(*settings.SSH)
	}

	provider, err := proxmoxve.NewProvider(ctx, name, args, append(opts, pulumi.Version(ProxmoxProviderVersion))...)
	if err != nil {
		return nil, fmt.Errorf("registering the Proxmox provider %q: %w", name, err)
	}

	return provider, nil
}

// NewTalosProvider registers the provider that speaks to Talos nodes and to the Image Factory at
// factoryURL (the public one when nil). One provider serves one factory.
func NewTalosProvider(
	ctx *pulumi.Context, name string, factoryURL *string, opts ...pulumi.ResourceOption,
) (*talos.Provider, error) {
	args := &talos.ProviderArgs{}
	if factory := spec.Or(factoryURL, image.DefaultFactory); factory != image.DefaultFactory {
		args.ImageFactoryUrl = pulumi.StringPtr(factory)
	}

	provider, err := talos.NewProvider(ctx, name, args, append(opts, pulumi.Version(TalosProviderVersion))...)
	if err != nil {
		return nil, fmt.Errorf("registering the Talos provider %q: %w", name, err)
	}

	return provider, nil
}

// withEnvironment adds the credentials that the provider takes from its environment, so that options
// which not every credential allows are held against them too.
func withEnvironment(p spec.Proxmox) spec.Proxmox {
	if p.APIToken != nil || p.Password != nil {
		return p
	}
	if token := os.Getenv("PROXMOX_VE_API_TOKEN"); token != "" {
		p.APIToken = spec.Ptr(spec.NewSecret(token))
	}
	if user := os.Getenv("PROXMOX_VE_USERNAME"); user != "" && p.Username == nil {
		p.Username = &user
	}

	return p
}

func validateProxmox(settings spec.Proxmox, l *check.List) {
	if settings.Endpoint != nil {
		u, err := url.Parse(*settings.Endpoint)
		if err != nil || u.Scheme != "https" || u.Host == "" {
			l.Addf("endpoint", "%q is no address of Proxmox VE: write one such as https://pve.example.com:8006/", *settings.Endpoint)
		}
	}
	if settings.APIToken != nil && settings.Password != nil {
		l.Addf("password", "cannot stand beside apiToken: give one of the two")
	}
	if settings.Password != nil && settings.Username == nil {
		l.Addf("username", "is needed with password")
	}
	if settings.SSH != nil && settings.SSH.Username == "" {
		l.Addf("ssh.username", "is required: an API token has no user of the host")
	}
}

// secretInput keeps a secret secret from the settings to the state.
func secretInput(s *spec.Secret) pulumi.StringPtrInput {
	if s == nil {
		return nil
	}

	return pulumi.ToSecret(pulumi.String(s.Reveal())).(pulumi.StringOutput).ToStringPtrOutput()
}

// sshArgs wraps what the plugin's schema does not mark as secret.
func sshArgs(ssh spec.SSH) proxmoxve.ProviderSshArgs {
	args := proxmoxve.ProviderSshArgs{
		Username:   pulumi.String(ssh.Username),
		PrivateKey: secretInput(ssh.PrivateKey),
		Password:   secretInput(ssh.Password),
		Agent:      pulumi.Bool(spec.Or(ssh.Agent, false)),
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
