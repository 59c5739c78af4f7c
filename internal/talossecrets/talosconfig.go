// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talossecrets

import (
	"fmt"
	"time"

	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/role"

	"github.com/siderolabs/crypto/x509"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// ClientConfiguration gives an administrator access to the Talos API: PEM in base64, as the Talos
// provider has it. Every value but the authority's certificate is secret.
type ClientConfiguration struct {
	// CaCertificate is the certificate of the Talos API's authority.
	CaCertificate string `json:"caCertificate"`
	// ClientCertificate of the administrator.
	ClientCertificate string `json:"clientCertificate"`
	// ClientKey of ClientCertificate.
	ClientKey string `json:"clientKey"`
}

// NewClientConfiguration issues an administrator's certificate that is valid from now for the
// given time.
func NewClientConfiguration(b *secrets.Bundle, now time.Time, validity time.Duration) (ClientConfiguration, error) {
	issuer := *b
	issuer.Clock = secrets.NewFixedClock(now)
	pair, err := issuer.GenerateTalosAPIClientCertificateWithTTL(role.MakeSet(role.Admin), validity)
	if err != nil {
		return ClientConfiguration{}, fmt.Errorf("issuing the administrator's certificate: %w", err)
	}

	return ClientConfiguration{
		CaCertificate: encode(b.Certs.OS.Crt), ClientCertificate: encode(pair.Crt), ClientKey: encode(pair.Key),
	}, nil
}

// Talosconfig returns the file that talosctl reads: its endpoints are the control planes only, since the
// others do not forward, and never the VIP, which is not there before Kubernetes is; its nodes are
// all nodes. It holds secrets.
func Talosconfig(cfg spec.Config, client ClientConfiguration) (string, error) {
	ca, err := pemOf(client.CaCertificate)
	if err != nil {
		return "", fmt.Errorf("writing the talosconfig: the authority's certificate: %w", err)
	}
	crt, err := pemOf(client.ClientCertificate)
	if err != nil {
		return "", fmt.Errorf("writing the talosconfig: the client's certificate: %w", err)
	}
	key, err := pemOf(client.ClientKey)
	if err != nil {
		return "", fmt.Errorf("writing the talosconfig: the client's key: %w", err)
	}
	name := spec.Value(cfg.Cluster.Name)
	config := clientconfig.NewConfig(name, addresses(cfg.ControlPlanes()), ca, &x509.PEMEncodedCertificateAndKey{Crt: crt, Key: key})
	config.Contexts[name].Nodes = append(addresses(cfg.ControlPlanes()), addresses(cfg.Workers())...)
	text, err := config.Bytes()
	if err != nil {
		return "", fmt.Errorf("writing the talosconfig: %w", err)
	}

	return string(text), nil
}

// addresses returns where the nodes are reached; their names where they have no fixed address.
func addresses(nodes []spec.NamedNode) []string {
	list := make([]string, 0, len(nodes))
	for _, n := range nodes {
		if a := n.Address(); a.IsValid() {
			list = append(list, a.String())

			continue
		}
		list = append(list, spec.Value(n.Hostname))
	}

	return list
}
