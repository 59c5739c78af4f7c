// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"errors"
	"fmt"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/cluster"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// openKubeconfig fetches the administrator's kubeconfig and lets it out when the cluster is ready.
func (c *TalosCluster) openKubeconfig(
	ctx *pulumi.Context, name string, before []pulumi.Resource, ready pulumi.CustomResource,
) error {
	first := c.config.ControlPlanes()[0]
	k, err := cluster.NewKubeconfig(ctx, name+"-kubeconfig", &cluster.KubeconfigArgs{
		ClientConfiguration: cluster.KubeconfigClientConfigurationArgs{
			CaCertificate: c.secrets.ca, ClientCertificate: c.secrets.certificate, ClientKey: c.secrets.key,
		},
		Node:                       pulumi.String(first.Address().String()),
		CertificateRenewalDuration: pulumi.String(duration(c.config.Lifecycle.KubeconfigRenewal, 720*time.Hour).String()),
	},
		pulumi.Parent(c), pulumi.DependsOn(before), providerTimeout(c.config),
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

// providerTimeout bounds what the Talos provider does. It is said to the engine: the provider's own input
// timeouts makes every creation of the plugin fail once it has succeeded (0.7.1: "__pulumi_raw_state_delta
// does not apply cleanly"). The plugin gives up after ten minutes whatever is said.
func providerTimeout(config spec.Config) pulumi.ResourceOption {
	limit := duration(config.Lifecycle.ApplyTimeout, 10*time.Minute).String()

	return pulumi.Timeouts(&pulumi.CustomTimeouts{Create: limit, Update: limit})
}
