// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"errors"
	"fmt"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/cluster"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"

	"github.com/talos-proxmox/talos-proxmox/internal/talossecrets"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// fetchKubeconfig fetches the administrator's kubeconfig: when every node has its configuration, and while the cluster
// is made, as soon as etcd runs.
func fetchKubeconfig(b *Build, joined []pulumi.Resource) (*cluster.Kubeconfig, error) {
	first := b.Config.ControlPlanes()[0]
	k, err := cluster.NewKubeconfig(b.Ctx, b.Name+"-kubeconfig", &cluster.KubeconfigArgs{
		ClientConfiguration: cluster.KubeconfigClientConfigurationArgs{
			CaCertificate: b.Secrets.CA, ClientCertificate: b.Secrets.Certificate, ClientKey: b.Secrets.Key,
		},
		Node:                       pulumi.String(first.Address().String()),
		CertificateRenewalDuration: pulumi.String(time.Duration(*b.Config.Lifecycle.KubeconfigRenewal).String()),
	},
		pulumi.Parent(b.Parent), pulumi.DependsOn(joined[len(joined)-1:]), b.afterIfLiving(joined...), providerTimeout(b.Config),
		// The provider fetches again only when the certificate is about to expire, not when the
		// cluster has become another one.
		pulumi.ReplaceOnChanges([]string{"clientConfiguration.caCertificate"}),
		// Nor when the cluster is reached at another address, which the kubeconfig names, or on request.
		pulumi.ReplacementTrigger(pulumi.String(kubeconfigToken(b.Config))),
		pulumi.AdditionalSecretOutputs([]string{"clientConfiguration", "kubernetesClientConfiguration"}))
	if err != nil {
		return nil, fmt.Errorf("registering the kubeconfig of cluster %q: %w", b.Name, err)
	}

	return k, nil
}

// openKubeconfig returns the kubeconfig once the cluster is ready.
func openKubeconfig(b *Build, k *cluster.Kubeconfig, ready pulumi.CustomResource) pulumi.StringOutput {
	file := fileAtUp(b.Session, b.Config.Output.KubeconfigFile)
	opened := pulumi.All(k.KubeconfigRaw, ready.ID()).ApplyT(func(v []any) (string, error) {
		kubeconfig, ok := v[0].(string)
		if !ok {
			return "", errors.New("the provider returned no kubeconfig")
		}

		return kubeconfig, writePrivate(file, kubeconfig)
	}).(pulumi.StringOutput)

	return secretString(opened)
}

// kubeconfigToken returns a text that changes when another kubeconfig is due.
func kubeconfigToken(cfg spec.Config) string {
	token := cfg.Endpoint()
	if times := spec.Value(cfg.Lifecycle.RenewCertificates); times > 0 {
		token += fmt.Sprintf(" %d", times)
	}
	if accepted := talossecrets.AcceptedToken(cfg.Cluster); accepted != "" {
		token += " " + accepted
	}

	return token
}

// clientConfiguration returns the administrator's certificate for the provider's resources.
func clientConfiguration(s *Secrets) machine.ClientConfigurationArgs {
	return machine.ClientConfigurationArgs{CaCertificate: s.CA, ClientCertificate: s.Certificate, ClientKey: s.Key}
}

// providerTimeout bounds what the Talos provider does. The engine is told: the provider's own input timeouts
// makes every creation of the plugin fail once it has succeeded (0.7.1: "__pulumi_raw_state_delta does not
// apply cleanly"). The plugin gives up after ten minutes whatever it is told.
func providerTimeout(config spec.Config) pulumi.ResourceOption {
	limit := time.Duration(*config.Lifecycle.ApplyTimeout).String()

	return pulumi.Timeouts(&pulumi.CustomTimeouts{Create: limit, Update: limit})
}
