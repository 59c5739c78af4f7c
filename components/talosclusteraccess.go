// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"errors"
	"fmt"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/cluster"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"
)

// bootstrap starts etcd on the first control plane as soon as that node has its configuration. It is
// done once in a cluster's life: when that node goes, nothing is started again elsewhere.
func (c *TalosCluster) bootstrap(
	ctx *pulumi.Context, name string, applies map[string]*machine.ConfigurationApply,
) (*machine.Bootstrap, error) {
	first := c.config.ControlPlanes()[0]
	timeout := pulumi.String(duration(c.config.Lifecycle.ApplyTimeout, 10*time.Minute).String())
	b, err := machine.NewBootstrap(ctx, name+"-bootstrap", &machine.BootstrapArgs{
		ClientConfiguration: machine.ClientConfigurationArgs{
			CaCertificate: c.secrets.ca, ClientCertificate: c.secrets.certificate, ClientKey: c.secrets.key,
		},
		Node:     pulumi.String(first.Address().String()),
		Timeouts: machine.BootstrapTimeoutsArgs{Create: timeout},
	},
		pulumi.Parent(c), pulumi.DependsOn([]pulumi.Resource{applies[first.Name]}),
		pulumi.IgnoreChanges([]string{"node", "endpoint"}),
		pulumi.AdditionalSecretOutputs([]string{"clientConfiguration"}))
	if err != nil {
		return nil, fmt.Errorf("registering the bootstrap of cluster %q: %w", name, err)
	}

	return b, nil
}

// openKubeconfig fetches the administrator's kubeconfig and lets it out when the cluster is ready.
func (c *TalosCluster) openKubeconfig(
	ctx *pulumi.Context, name string, before []pulumi.Resource, ready pulumi.CustomResource,
) error {
	first := c.config.ControlPlanes()[0]
	timeout := pulumi.String(duration(c.config.Lifecycle.ApplyTimeout, 10*time.Minute).String())
	k, err := cluster.NewKubeconfig(ctx, name+"-kubeconfig", &cluster.KubeconfigArgs{
		ClientConfiguration: cluster.KubeconfigClientConfigurationArgs{
			CaCertificate: c.secrets.ca, ClientCertificate: c.secrets.certificate, ClientKey: c.secrets.key,
		},
		Node:                       pulumi.String(first.Address().String()),
		CertificateRenewalDuration: pulumi.String(duration(c.config.Lifecycle.KubeconfigRenewal, 720*time.Hour).String()),
		Timeouts:                   cluster.KubeconfigTimeoutsArgs{Create: timeout, Update: timeout},
	},
		pulumi.Parent(c), pulumi.DependsOn(before),
		// The provider fetches again only when the certificate is about to expire, not when the
		// cluster has become another one.
		pulumi.ReplaceOnChanges([]string{"clientConfiguration.caCertificate"}),
		pulumi.AdditionalSecretOutputs([]string{"clientConfiguration", "kubernetesClientConfiguration"}))
	if err != nil {
		return fmt.Errorf("registering the kubeconfig of cluster %q: %w", name, err)
	}

	file := fileAtUp(ctx, c.config.Output.KubeconfigFile)
	opened := pulumi.All(k.KubeconfigRaw, ready.ID()).ApplyT(func(v []any) (string, error) {
		kubeconfig, ok := v[0].(string)
		if !ok {
			return "", errors.New("the provider returned no kubeconfig")
		}

		return kubeconfig, writePrivate(file, kubeconfig)
	})
	c.Kubeconfig = pulumi.ToSecret(opened).(pulumi.StringOutput) //nolint:forcetypeassert // ToSecret keeps the type

	return nil
}
