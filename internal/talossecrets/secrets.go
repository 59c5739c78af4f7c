// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package talossecrets reads and writes what a Talos cluster's secrets are: the bundle, an administrator's access, the
// talosconfig.
package talossecrets

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig/explain"
)

// Secrets holds a cluster's secrets in the shape that the Talos provider's Secrets resource has them:
// certificates and keys are PEM in base64. Every value is secret.
type Secrets struct {
	// Certs are the certificate authorities and the service accounts' key.
	Certs Certificates `json:"certs"`
	// Cluster identifies the cluster towards discovery.
	Cluster ClusterIdentity `json:"cluster"`
	// Secrets are Kubernetes's.
	Secrets KubernetesSecrets `json:"secrets"`
	// Trustdinfo lets nodes ask for Talos certificates.
	Trustdinfo TrustdInfo `json:"trustdinfo"`
}

// Certificates holds the certificate authorities and the service accounts' key.
type Certificates struct {
	// Etcd is etcd's authority.
	Etcd Certificate `json:"etcd"`
	// K8s is Kubernetes's authority.
	K8s Certificate `json:"k8s"`
	// K8sAggregator is the authority of the API aggregation layer.
	K8sAggregator Certificate `json:"k8sAggregator"`
	// K8sServiceaccount signs service account tokens.
	K8sServiceaccount Key `json:"k8sServiceaccount"`
	// Os is the authority of the Talos API.
	Os Certificate `json:"os"`
}

// Certificate holds a certificate and its key.
type Certificate struct {
	// Cert is PEM in base64.
	Cert string `json:"cert"`
	// Key is PEM in base64.
	Key string `json:"key"`
}

// Key holds a private key.
type Key struct {
	// Key is PEM in base64.
	Key string `json:"key"`
}

// ClusterIdentity identifies the cluster towards discovery.
type ClusterIdentity struct {
	// Id of the cluster.
	Id string `json:"id"`
	// Secret that members share.
	Secret string `json:"secret"`
}

// KubernetesSecrets holds Kubernetes's own secrets; one of the two encryption secrets is set.
type KubernetesSecrets struct {
	// BootstrapToken lets kubelets join.
	BootstrapToken string `json:"bootstrapToken"`
	// SecretboxEncryptionSecret encrypts secrets in etcd.
	SecretboxEncryptionSecret string `json:"secretboxEncryptionSecret,omitempty"`
	// AescbcEncryptionSecret encrypts secrets in etcd, in older clusters.
	AescbcEncryptionSecret string `json:"aescbcEncryptionSecret,omitempty"`
}

// TrustdInfo lets nodes ask for Talos certificates.
type TrustdInfo struct {
	// Token that nodes show.
	Token string `json:"token"`
}

// Bundle returns the secrets as Talos's machinery takes them. The error names the secret that is missing or damaged, never its
// value.
func (s Secrets) Bundle() (*secrets.Bundle, error) {
	b := &secrets.Bundle{
		Clock:   secrets.NewClock(),
		Cluster: &secrets.Cluster{ID: s.Cluster.Id, Secret: s.Cluster.Secret},
		Secrets: &secrets.Secrets{
			BootstrapToken:            s.Secrets.BootstrapToken,
			SecretboxEncryptionSecret: s.Secrets.SecretboxEncryptionSecret,
			AESCBCEncryptionSecret:    s.Secrets.AescbcEncryptionSecret,
		},
		TrustdInfo: &secrets.TrustdInfo{Token: s.Trustdinfo.Token},
		Certs:      &secrets.Certs{},
	}
	for _, c := range []struct {
		name string
		from Certificate
		to   **x509.PEMEncodedCertificateAndKey
	}{
		{"etcd", s.Certs.Etcd, &b.Certs.Etcd},
		{"k8s", s.Certs.K8s, &b.Certs.K8s},
		{"k8sAggregator", s.Certs.K8sAggregator, &b.Certs.K8sAggregator},
		{"os", s.Certs.Os, &b.Certs.OS},
	} {
		crt, errCrt := pemOf(c.from.Cert)
		key, errKey := pemOf(c.from.Key)
		if err := errors.Join(errCrt, errKey); err != nil {
			return nil, fmt.Errorf("reading secret certs.%s: %w", c.name, err)
		}
		*c.to = &x509.PEMEncodedCertificateAndKey{Crt: crt, Key: key}
	}
	key, err := pemOf(s.Certs.K8sServiceaccount.Key)
	if err != nil {
		return nil, fmt.Errorf("reading secret certs.k8sServiceaccount: %w", err)
	}
	b.Certs.K8sServiceAccount = &x509.PEMEncodedKey{Key: key}
	if err := b.Validate(config.TalosVersionCurrent); err != nil {
		return nil, fmt.Errorf("reading the cluster's secrets: %s", strings.Join(explain.Messages(err), "; "))
	}

	return b, nil
}

// Of returns a bundle in the provider's shape.
func Of(b *secrets.Bundle) Secrets {
	pair := func(p *x509.PEMEncodedCertificateAndKey) Certificate {
		return Certificate{Cert: encode(p.Crt), Key: encode(p.Key)}
	}

	return Secrets{
		Certs: Certificates{
			Etcd: pair(b.Certs.Etcd), K8s: pair(b.Certs.K8s), K8sAggregator: pair(b.Certs.K8sAggregator), Os: pair(b.Certs.OS),
			K8sServiceaccount: Key{Key: encode(b.Certs.K8sServiceAccount.Key)},
		},
		Cluster: ClusterIdentity{Id: b.Cluster.ID, Secret: b.Cluster.Secret},
		Secrets: KubernetesSecrets{
			BootstrapToken:            b.Secrets.BootstrapToken,
			SecretboxEncryptionSecret: b.Secrets.SecretboxEncryptionSecret,
			AescbcEncryptionSecret:    b.Secrets.AESCBCEncryptionSecret,
		},
		Trustdinfo: TrustdInfo{Token: b.TrustdInfo.Token},
	}
}

// notABundle begins what is said about a text that holds no secrets bundle.
const notABundle = "the secrets bundle is not what `talosctl gen secrets` writes"

// Parse reads an existing cluster's secrets as `talosctl gen secrets` writes them.
func Parse(text string) (Secrets, error) {
	b := &secrets.Bundle{Clock: secrets.NewClock()}
	if err := yaml.Unmarshal([]byte(text), b); err != nil {
		return Secrets{}, fmt.Errorf("%s: %s", notABundle, explain.Load(err))
	}
	if err := b.Validate(config.TalosVersionCurrent); err != nil {
		return Secrets{}, fmt.Errorf("%s: %s", notABundle, strings.Join(explain.Messages(err), "; "))
	}

	return Of(b), nil
}

// pemOf decodes base64; PEM itself is taken too.
func pemOf(text string) ([]byte, error) {
	if strings.HasPrefix(text, "-----BEGIN") {
		return []byte(text), nil
	}
	decoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("the value is not base64")
	}

	return decoded, nil
}

// encode returns base64.
func encode(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
