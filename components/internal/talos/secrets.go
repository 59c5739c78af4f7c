// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"

	"github.com/talos-proxmox/talos-proxmox/components/internal/stash"
	"github.com/talos-proxmox/talos-proxmox/internal/talossecrets"
	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Secrets holds a cluster's certificates and keys.
type Secrets struct {
	// Resource has them in the state.
	Resource pulumi.Resource
	// Contract is the version contract that was pinned when the cluster was made.
	Contract pulumi.StringOutput
	// Bundle resolves to a *secrets.Bundle.
	Bundle pulumi.Output
	// CA, Certificate and Key are an administrator's of the Talos API, each base64 of PEM.
	CA, Certificate, Key pulumi.StringOutput
	// Talosconfig of an administrator: endpoints are the control planes, nodes are all.
	Talosconfig pulumi.StringOutput
}

// RegisterSecrets registers the secrets of a cluster: generated once, or those of an existing cluster.
func RegisterSecrets(s *Session, parent pulumi.Resource, first []pulumi.Resource) (*Secrets, error) {
	opts := []pulumi.ResourceOption{pulumi.Parent(parent), pulumi.DependsOn(first)}
	if *s.Config.Cluster.Protect {
		opts = append(opts, pulumi.Protect(true))
	}
	register := generateSecrets
	if s.Config.Cluster.SecretsBundle != nil {
		register = adoptSecrets
	}
	made, err := register(s, opts...)
	if err != nil {
		return nil, err
	}
	made.CA = trustAccepted(s.Config.Cluster, made.CA)
	made.Talosconfig = talosconfig(s, made)

	return made, nil
}

// generateSecrets makes the secrets when the cluster is created.
func generateSecrets(s *Session, opts ...pulumi.ResourceOption) (*Secrets, error) {
	// A lower version here would make every certificate anew and the cluster would be lost.
	opts = append(opts, pulumi.IgnoreChanges([]string{"talosVersion"}),
		pulumi.AdditionalSecretOutputs([]string{"clientConfiguration", "machineSecrets"}))
	r, err := machine.NewSecrets(s.Ctx, s.Name+"-secrets", &machine.SecretsArgs{
		TalosVersion: pulumi.String(firstContract(s.Config)),
	}, opts...)
	if err != nil {
		return nil, fmt.Errorf("registering the secrets of cluster %q: %w", s.Name, err)
	}
	client := pulumi.ToSecret(r.ClientConfiguration).(machine.ClientConfigurationOutput)
	made := &Secrets{
		Resource: r,
		Bundle: pulumi.ToSecret(r.MachineSecrets.ApplyT(func(m machine.MachineSecrets) (*secrets.Bundle, error) {
			return secretsOf(m).Bundle()
		})),
		CA: client.CaCertificate(), Certificate: client.ClientCertificate(), Key: client.ClientKey(),
		Contract: pinnedContract(s.Config, r.TalosVersion),
	}
	if spec.Value(s.Config.Lifecycle.RenewCertificates) == 0 {
		return made, nil // the provider renews its own in the last month
	}

	return made, issueCertificate(s, made, opts...)
}

// firstContract returns what a cluster that is made now is pinned to: as told, else the version's own.
func firstContract(cfg spec.Config) string {
	return cmp.Or(spec.Value(cfg.Talos.Contract), versions.MinorOf(*cfg.Talos.Version))
}

// pinnedContract reads the contract from the state; the version's own where the state has none.
func pinnedContract(cfg spec.Config, stored pulumi.StringOutput) pulumi.StringOutput {
	own := firstContract(cfg)

	return stored.ApplyT(func(text string) string {
		if _, err := versions.ParseContract(versions.MinorOf(text)); err != nil {
			return own
		}

		return versions.MinorOf(text)
	}).(pulumi.StringOutput)
}

// secretsOf returns the provider's secrets without its SDK.
func secretsOf(s machine.MachineSecrets) talossecrets.Secrets {
	pair := func(c machine.Certificate) talossecrets.Certificate {
		return talossecrets.Certificate{Cert: c.Cert, Key: c.Key}
	}

	return talossecrets.Secrets{
		Certs: talossecrets.Certificates{
			Etcd: pair(s.Certs.Etcd), K8s: pair(s.Certs.K8s), K8sAggregator: pair(s.Certs.K8sAggregator),
			K8sServiceaccount: talossecrets.Key{Key: s.Certs.K8sServiceaccount.Key}, Os: pair(s.Certs.Os),
		},
		Cluster: talossecrets.ClusterIdentity{Id: s.Cluster.Id, Secret: s.Cluster.Secret},
		Secrets: talossecrets.KubernetesSecrets{
			BootstrapToken:            s.Secrets.BootstrapToken,
			SecretboxEncryptionSecret: s.Secrets.SecretboxEncryptionSecret,
			AescbcEncryptionSecret:    spec.Value(s.Secrets.AescbcEncryptionSecret),
		},
		Trustdinfo: talossecrets.TrustdInfo{Token: s.Trustdinfo.Token},
	}
}

// adoptSecrets takes the secrets of an existing cluster, in the form of "talosctl gen secrets".
func adoptSecrets(s *Session, opts ...pulumi.ResourceOption) (*Secrets, error) {
	parsed, err := talossecrets.Parse(s.Config.Cluster.SecretsBundle.Reveal())
	if err != nil {
		return nil, fmt.Errorf("cluster %q: cluster.secretsBundle: %w", s.Name, err)
	}
	bundle, err := parsed.Bundle()
	if err != nil {
		return nil, fmt.Errorf("cluster %q: cluster.secretsBundle: %w", s.Name, err)
	}
	stored, err := stash.Persist(s.Ctx, s.Name+"-client", pulumi.StringMap{
		"contract": pulumi.String(firstContract(s.Config)),
	}, opts...)
	if err != nil {
		return nil, err
	}
	made := &Secrets{
		Resource: stored.Resource,
		Bundle:   pulumi.ToSecret(stored.Value("contract").ApplyT(func(string) *secrets.Bundle { return bundle })),
		Contract: pinnedContract(s.Config, stored.Public("contract")),
	}

	return made, issueCertificate(s, made, opts...)
}

// talosconfig returns the administrator's talosconfig. It also tells the hooks how to reach the nodes.
func talosconfig(s *Session, made *Secrets) pulumi.StringOutput {
	file := fileAtUp(s, s.Config.Output.TalosconfigFile)
	config := pulumi.All(made.CA, made.Certificate, made.Key).ApplyT(func(v []any) (string, error) {
		client := talossecrets.ClientConfiguration{}
		for i, field := range []*string{&client.CaCertificate, &client.ClientCertificate, &client.ClientKey} {
			*field, _ = v[i].(string)
		}
		text, err := talossecrets.Talosconfig(s.Config, client)
		if err != nil {
			return "", err
		}
		s.APIs.talosconfig.Set(text)

		return text, writePrivate(file, text)
	}).(pulumi.StringOutput)

	return secretString(config)
}

// fileAtUp returns where a credential is written; empty when none is asked for, and at preview.
func fileAtUp(s *Session, path *string) string {
	if s.Ctx.DryRun() {
		return ""
	}

	return spec.Value(path)
}

func secretString(text pulumi.StringOutput) pulumi.StringOutput {
	return pulumi.ToSecret(text).(pulumi.StringOutput)
}

const (
	// certificateLifetime is that of an administrator's certificate for the Talos API.
	certificateLifetime = 365 * 24 * time.Hour
	// certificateTerm is how often it is made anew: half its life before it ends at the latest.
	certificateTerm = certificateLifetime / 2
)

// issueCertificate issues the administrator's certificate from the cluster's own authority, and keeps it in the
// state. A new one is made in each half of a year, and whenever the stack asks for it.
func issueCertificate(s *Session, made *Secrets, opts ...pulumi.ResourceOption) error {
	fresh := made.Bundle.ApplyT(func(v any) (map[string]string, error) {
		bundle, ok := v.(*secrets.Bundle)
		if !ok {
			return nil, errors.New("the cluster's secrets are missing")
		}
		client, err := talossecrets.NewClientConfiguration(bundle, time.Now(), certificateLifetime)
		if err != nil {
			return nil, fmt.Errorf("cluster %q: %w", s.Name, err)
		}

		return map[string]string{"ca": client.CaCertificate, "certificate": client.ClientCertificate, "key": client.ClientKey}, nil
	}).(pulumi.StringMapOutput)
	value := func(key string) pulumi.StringOutput { return fresh.MapIndex(pulumi.String(key)) }
	stored, err := stash.Persist(s.Ctx, s.Name+"-certificate",
		pulumi.StringMap{"ca": value("ca"), "certificate": value("certificate"), "key": value("key")},
		append(opts[:len(opts):len(opts)], pulumi.ReplacementTrigger(pulumi.String(certificateToken(s.Config, time.Now()))))...)
	if err != nil {
		return err
	}
	made.CA, made.Certificate, made.Key = stored.Value("ca"), stored.Value("certificate"), stored.Value("key")

	return nil
}

// certificateToken returns a text that changes when a new certificate is due.
func certificateToken(cfg spec.Config, now time.Time) string {
	token := fmt.Sprintf("%d/%d", spec.Value(cfg.Lifecycle.RenewCertificates), now.Unix()/int64(certificateTerm/time.Second))
	if accepted := talossecrets.AcceptedToken(cfg.Cluster); accepted != "" {
		token += " " + accepted
	}

	return token
}

// trustAccepted adds the accepted authorities of the Talos API to the one that clients trust.
func trustAccepted(c spec.Cluster, ca pulumi.StringOutput) pulumi.StringOutput {
	accepted := c.AcceptedTalosCAs()
	if len(accepted) == 0 {
		return ca
	}

	return ca.ApplyT(func(text string) (string, error) { return talossecrets.WithAccepted(text, accepted) }).(pulumi.StringOutput)
}
