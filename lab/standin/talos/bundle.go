// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"encoding/base64"
	"time"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// bundleOf makes a secrets bundle of the SDK's form of it.
func bundleOf(s bridge.Tree) (*secrets.Bundle, error) {
	d := decoder{from: s}

	b := &secrets.Bundle{
		Clock:   secrets.NewFixedClock(time.Now()),
		Cluster: &secrets.Cluster{ID: s.Str("cluster.id"), Secret: s.Str("cluster.secret")},
		Secrets: &secrets.Secrets{
			BootstrapToken:            s.Str("secrets.bootstrapToken"),
			SecretboxEncryptionSecret: s.Str("secrets.secretboxEncryptionSecret"),
			AESCBCEncryptionSecret:    s.Str("secrets.aescbcEncryptionSecret"),
		},
		TrustdInfo: &secrets.TrustdInfo{Token: s.Str("trustdinfo.token")},
		Certs: &secrets.Certs{
			Etcd: d.pair("certs.etcd"), K8s: d.pair("certs.k8s"), K8sAggregator: d.pair("certs.k8sAggregator"),
			K8sServiceAccount: &x509.PEMEncodedKey{Key: d.bytes("certs.k8sServiceaccount.key")},
			OS:                d.pair("certs.os"),
		},
	}

	return b, d.err
}

// decoder reads base64 and keeps the first error.
type decoder struct {
	from bridge.Tree
	err  error
}

func (d *decoder) bytes(path string) []byte {
	b, err := base64.StdEncoding.DecodeString(d.from.Str(path))
	if err != nil && d.err == nil {
		d.err = err
	}

	return b
}

func (d *decoder) pair(path string) *x509.PEMEncodedCertificateAndKey {
	return &x509.PEMEncodedCertificateAndKey{Crt: d.bytes(path + ".cert"), Key: d.bytes(path + ".key")}
}
