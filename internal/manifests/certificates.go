// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package manifests

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"
)

// certificateValidity is how long Cilium's certificates last: they are kept in the state and nobody
// renews them, as with the cluster's other authorities.
const certificateValidity = 10 * 365 * 24 * time.Hour

// Certificates hold those that Cilium's chart would otherwise make up at every render. They are made
// once and kept as secrets; all are PEM.
type Certificates struct {
	// CA is Cilium's authority.
	CA Pair `json:"ca"`
	// HubbleServer is the agents' certificate for Hubble.
	HubbleServer Pair `json:"hubbleServer"`
	// RelayClient is the one by which Hubble Relay asks the agents.
	RelayClient Pair `json:"relayClient"`
	// RelayServer is Hubble Relay's own.
	RelayServer Pair `json:"relayServer"`
	// UIClient is the one by which Hubble UI asks Hubble Relay.
	UIClient Pair `json:"uiClient"`
}

// Pair holds a certificate and its key, both PEM.
type Pair struct {
	// Cert is the certificate.
	Cert string `json:"cert"`
	// Key is its key; secret.
	Key string `json:"key"`
}

// NewCertificates makes the certificates of a cluster, valid for ten years from now. Call it once in
// a cluster's life and keep the result: another call gives others.
func NewCertificates(cluster string, now time.Time) (Certificates, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Certificates{}, fmt.Errorf("making Cilium's certificates: %w", err)
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "Cilium CA"}, SerialNumber: big.NewInt(1),
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateValidity),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return Certificates{}, fmt.Errorf("making Cilium's certificates: %w", err)
	}
	authority := &issuer{certificate: template, key: key, serial: 1}
	c := Certificates{}
	if c.CA, err = encodePair(raw, key); err != nil {
		return Certificates{}, err
	}
	for _, leaf := range []struct {
		to    *Pair
		names []string
	}{
		{&c.HubbleServer, []string{"*.default.hubble-grpc.cilium.io", "*." + cluster + ".hubble-grpc.cilium.io"}},
		{&c.RelayClient, []string{"*.hubble-relay.cilium.io"}},
		{&c.RelayServer, []string{"*.hubble-relay.cilium.io"}},
		{&c.UIClient, []string{"*.hubble-ui.cilium.io"}},
	} {
		if *leaf.to, err = authority.issue(leaf.names); err != nil {
			return Certificates{}, err
		}
	}

	return c, nil
}

// issuer signs certificates.
type issuer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	serial      int64
}

// issue makes a certificate for those names, for both ends of a connection.
func (i *issuer) issue(names []string) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("making the certificate of %s: %w", names[0], err)
	}
	i.serial++
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: names[0]}, DNSNames: names, SerialNumber: big.NewInt(i.serial),
		NotBefore: i.certificate.NotBefore, NotAfter: i.certificate.NotAfter,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, i.certificate, &key.PublicKey, i.key)
	if err != nil {
		return Pair{}, fmt.Errorf("making the certificate of %s: %w", names[0], err)
	}

	return encodePair(raw, key)
}

// encodePair writes both as PEM.
func encodePair(raw []byte, key *ecdsa.PrivateKey) (Pair, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encoding a key: %w", err)
	}

	return Pair{
		Cert: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})),
		Key:  string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})),
	}, nil
}

// values tell the chart to use the certificates and to make none.
func (c Certificates) values() object {
	pair := func(p Pair) object { return object{"cert": base64Of(p.Cert), "key": base64Of(p.Key)} }

	return object{
		"tls": object{"ca": pair(c.CA)},
		"hubble": object{
			"tls": object{"auto": object{"enabled": false}, "server": pair(c.HubbleServer)},
			"relay": object{"tls": object{
				"client": pair(c.RelayClient),
				"server": pair(c.RelayServer),
			}},
			"ui": object{"tls": object{"client": pair(c.UIClient)}},
		},
	}
}
