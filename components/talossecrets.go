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
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// TalosSecretsType is the token of [TalosSecrets]. Changing it loses every cluster's secrets.
const TalosSecretsType = "talos-proxmox:components:TalosSecrets"

// TalosSecrets are a cluster's certificates and keys: generated once, or those of an existing cluster.
// They come before the machines, so that what happens to a machine can look at the cluster first.
type TalosSecrets struct {
	pulumi.ResourceState

	// Talosconfig of an administrator, a secret; known as soon as the secrets are.
	Talosconfig pulumi.StringOutput `pulumi:"talosconfig"`

	name   string
	config spec.Config
	access *lateAccess
	gate   *rollout.Gate
	// resource that keeps them in state.
	resource pulumi.Resource
	// contract is the version contract that was pinned when the cluster was made.
	contract pulumi.StringOutput
	// bundle resolves to a *secrets.Bundle.
	bundle pulumi.Output
	// client certificate of an administrator of the Talos API, each base64 of PEM.
	ca, certificate, key pulumi.StringOutput
}

// NewTalosSecrets registers the secrets of a cluster. Of the configuration it takes the contract at
// creation, an adopted bundle, protection, and the nodes' addresses for the talosconfig. The name must
// be unique among the program's clusters.
func NewTalosSecrets(
	ctx *pulumi.Context, name string, cfg spec.Config, opts ...pulumi.ResourceOption,
) (*TalosSecrets, error) {
	cfg = cfg.WithDefaults()
	s := &TalosSecrets{
		name: name, config: cfg, access: newLateAccess(clusterOf(cfg)),
		gate: rollout.NewGate(spec.Or(cfg.Lifecycle.MaxUnavailable, 1)),
	}
	if err := ctx.RegisterComponentResource(TalosSecretsType, name, s, opts...); err != nil {
		return nil, fmt.Errorf("registering the secrets of cluster %q: %w", name, err)
	}
	within := []pulumi.ResourceOption{pulumi.Parent(s)}
	if spec.Or(cfg.Cluster.Protect, false) {
		within = append(within, pulumi.Protect(true))
	}
	register := s.generate
	if cfg.Cluster.SecretsBundle != nil {
		register = s.adopt
	}
	if err := register(ctx, name, within...); err != nil {
		return nil, err
	}
	s.Talosconfig = s.talosconfig(ctx)

	return s, ctx.RegisterResourceOutputs(s, pulumi.Map{"talosconfig": s.Talosconfig})
}

// generate makes the secrets when the cluster is created.
func (s *TalosSecrets) generate(ctx *pulumi.Context, name string, opts ...pulumi.ResourceOption) error {
	// A lower version here would make every certificate anew and the cluster would be lost.
	opts = append(opts, pulumi.IgnoreChanges([]string{"talosVersion"}),
		pulumi.AdditionalSecretOutputs([]string{"clientConfiguration", "machineSecrets"}))
	r, err := machine.NewSecrets(ctx, name+"-secrets", &machine.SecretsArgs{
		TalosVersion: pulumi.String(s.firstContract()),
	}, opts...)
	if err != nil {
		return fmt.Errorf("registering the secrets of cluster %q: %w", name, err)
	}
	client := pulumi.ToSecret(r.ClientConfiguration).(machine.ClientConfigurationOutput) //nolint:forcetypeassert // ToSecret keeps the type
	s.resource = r
	s.bundle = pulumi.ToSecret(r.MachineSecrets.ApplyT(func(m machine.MachineSecrets) (*secrets.Bundle, error) {
		return secretsOf(m).Bundle() //nolint:wrapcheck // says everything
	}))
	s.ca, s.certificate, s.key = client.CaCertificate(), client.ClientCertificate(), client.ClientKey()
	s.contract = s.pinned(r.TalosVersion)

	return nil
}

// firstContract is what a cluster that is made now is pinned to: as told, else the version's own.
func (s *TalosSecrets) firstContract() string {
	return spec.Or(s.config.Talos.Contract, versions.MinorOf(spec.Or(s.config.Talos.Version, "")))
}

// pinned reads the contract from state. States of clusters that were adopted before it was kept have
// none: they get the version's own.
func (s *TalosSecrets) pinned(stored pulumi.StringOutput) pulumi.StringOutput {
	own := s.firstContract()

	return stored.ApplyT(func(text string) string {
		if _, err := versions.ParseContract(versions.MinorOf(text)); err != nil {
			return own
		}

		return versions.MinorOf(text)
	}).(pulumi.StringOutput) //nolint:forcetypeassert // the function's type
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

// adopt takes the secrets of an existing cluster, in the form of "talosctl gen secrets", and makes an
// administrator's certificate from them once.
func (s *TalosSecrets) adopt(ctx *pulumi.Context, name string, opts ...pulumi.ResourceOption) error {
	parsed, err := machineconfig.ParseSecrets(s.config.Cluster.SecretsBundle.Reveal())
	if err != nil {
		return fmt.Errorf("cluster %q: cluster.secretsBundle: %w", name, err)
	}
	bundle, err := parsed.Bundle()
	if err != nil {
		return fmt.Errorf("cluster %q: cluster.secretsBundle: %w", name, err)
	}
	client, err := machineconfig.NewClientConfiguration(bundle, time.Now(), adoptedCertificateLifetime)
	if err != nil {
		return fmt.Errorf("cluster %q: cluster.secretsBundle: %w", name, err)
	}
	stored, err := keep(ctx, name+"-client", pulumi.StringMap{
		"certificate": pulumi.String(client.ClientCertificate),
		"key":         pulumi.String(client.ClientKey),
		"contract":    pulumi.String(s.firstContract()),
	}, opts...)
	if err != nil {
		return err
	}
	s.resource = stored.resource
	s.bundle = pulumi.ToSecret(stored.value("key").ApplyT(func(string) *secrets.Bundle { return bundle }))
	s.ca = secretString(pulumi.String(client.CaCertificate))
	s.certificate, s.key = stored.value("certificate"), stored.value("key")
	plain := pulumi.Unsecret(stored.value("contract")).(pulumi.StringOutput) //nolint:forcetypeassert // Unsecret keeps the type
	s.contract = s.pinned(plain)

	return nil
}

// talosconfig is the administrator's talosconfig: endpoints are the control planes, nodes are all.
// It also tells the hooks how to reach the nodes.
func (s *TalosSecrets) talosconfig(ctx *pulumi.Context) pulumi.StringOutput {
	file := fileAtUp(ctx, s.config.Output.TalosconfigFile)
	config := pulumi.All(s.ca, s.certificate, s.key).ApplyT(func(v []any) (string, error) {
		client := machineconfig.ClientConfiguration{}
		for i, field := range []*string{&client.CaCertificate, &client.ClientCertificate, &client.ClientKey} {
			*field, _ = v[i].(string)
		}
		text, err := machineconfig.Talosconfig(s.config, client)
		if err != nil {
			return "", err //nolint:wrapcheck // says everything
		}
		s.access.set(text)

		return text, writePrivate(file, text)
	})

	return pulumi.ToSecret(config).(pulumi.StringOutput) //nolint:forcetypeassert // ToSecret keeps the type
}

// fileAtUp is where a credential is written; empty when none is asked for, and at preview.
func fileAtUp(ctx *pulumi.Context, path *string) string {
	if ctx.DryRun() {
		return ""
	}

	return spec.Or(path, "")
}
