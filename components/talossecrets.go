// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"fmt"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"

	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// clusterSecrets are a cluster's certificates and keys, all secret.
type clusterSecrets struct {
	// bundle resolves to a *secrets.Bundle.
	bundle pulumi.Output
	// client certificate of an administrator of the Talos API, each base64 of PEM.
	ca, certificate, key pulumi.StringOutput
}

// newClusterSecrets generates a cluster's secrets once, or takes those of an existing cluster.
func newClusterSecrets(
	ctx *pulumi.Context, name string, cfg spec.Config, opts ...pulumi.ResourceOption,
) (*clusterSecrets, error) {
	opts = append(opts, pulumi.Protect(spec.Or(cfg.Cluster.Protect, false)))
	if cfg.Cluster.SecretsBundle != nil {
		return adoptSecrets(ctx, name, *cfg.Cluster.SecretsBundle, opts...)
	}

	// A lower version here would make every certificate anew and the cluster would be lost.
	opts = append(opts, pulumi.IgnoreChanges([]string{"talosVersion"}),
		pulumi.AdditionalSecretOutputs([]string{"clientConfiguration", "machineSecrets"}))
	r, err := machine.NewSecrets(ctx, name+"-secrets", &machine.SecretsArgs{
		TalosVersion: pulumi.String(spec.Or(cfg.Talos.Contract, "")),
	}, opts...)
	if err != nil {
		return nil, fmt.Errorf("registering the secrets of cluster %q: %w", name, err)
	}
	client := pulumi.ToSecret(r.ClientConfiguration).(machine.ClientConfigurationOutput) //nolint:forcetypeassert // ToSecret keeps the type

	return &clusterSecrets{
		bundle: pulumi.ToSecret(r.MachineSecrets.ApplyT(func(s machine.MachineSecrets) (*secrets.Bundle, error) {
			return secretsOf(s).Bundle() //nolint:wrapcheck // says everything
		})),
		ca: client.CaCertificate(), certificate: client.ClientCertificate(), key: client.ClientKey(),
	}, nil
}

// secretsOf are the provider's secrets without its SDK.
func secretsOf(s machine.MachineSecrets) machineconfig.Secrets {
	pair := func(c machine.Certificate) machineconfig.Certificate {
		return machineconfig.Certificate{Cert: c.Cert, Key: c.Key}
	}

	return machineconfig.Secrets{
		Certs: machineconfig.Certificates{
			Etcd: pair(s.Certs.Etcd), K8s: pair(s.Certs.K8s), K8sAggregator: pair(s.Certs.K8sAggregator),
			K8sServiceaccount: machineconfig.Key{Key: s.Certs.K8sServiceaccount.Key}, Os: pair(s.Certs.Os),
		},
		Cluster: machineconfig.ClusterIdentity{Id: s.Cluster.Id, Secret: s.Cluster.Secret},
		Secrets: machineconfig.KubernetesSecrets{
			BootstrapToken:            s.Secrets.BootstrapToken,
			SecretboxEncryptionSecret: s.Secrets.SecretboxEncryptionSecret,
			AescbcEncryptionSecret:    spec.Or(s.Secrets.AescbcEncryptionSecret, ""),
		},
		Trustdinfo: machineconfig.TrustdInfo{Token: s.Trustdinfo.Token},
	}
}

// adoptedCertificateLifetime is that of Talos's certificate authority: the certificate is made once
// and kept in state.
const adoptedCertificateLifetime = 10 * 365 * 24 * time.Hour

// adoptSecrets takes the secrets of an existing cluster, in the form of "talosctl gen secrets", and
// makes an administrator's certificate from them once.
func adoptSecrets(
	ctx *pulumi.Context, name string, given spec.Secret, opts ...pulumi.ResourceOption,
) (*clusterSecrets, error) {
	parsed, err := machineconfig.ParseSecrets(given.Reveal())
	if err != nil {
		return nil, fmt.Errorf("cluster %q: cluster.secretsBundle: %w", name, err)
	}
	bundle, err := parsed.Bundle()
	if err != nil {
		return nil, fmt.Errorf("cluster %q: cluster.secretsBundle: %w", name, err)
	}
	client, err := machineconfig.NewClientConfiguration(bundle, time.Now(), adoptedCertificateLifetime)
	if err != nil {
		return nil, fmt.Errorf("cluster %q: cluster.secretsBundle: %w", name, err)
	}
	stored, err := keep(ctx, name+"-client", pulumi.StringMap{
		"certificate": pulumi.String(client.ClientCertificate),
		"key":         pulumi.String(client.ClientKey),
	}, opts...)
	if err != nil {
		return nil, err
	}

	return &clusterSecrets{
		bundle: pulumi.ToSecret(stored.value("key").ApplyT(func(string) *secrets.Bundle { return bundle })),
		ca:     secretString(pulumi.String(client.CaCertificate)), certificate: stored.value("certificate"), key: stored.value("key"),
	}, nil
}
