// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package nodepki

import (
	"bytes"
	"crypto/tls"
	stdx509 "crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/role"
)

// CertificateLifetime is that of the certificates a node issues for itself.
const CertificateLifetime = 24 * time.Hour

// SelfSigned returns the certificate of maintenance mode: nobody can verify it.
func SelfSigned(addrs []netip.Prefix, from, to time.Time) (tls.Certificate, error) {
	ca, err := x509.NewSelfSignedCertificateAuthority(x509.ECDSA(true))
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("creating the maintenance certificate: %w", err)
	}

	return issue(ca, "maintenance-service.talos.dev", nil, addrs, nil, true, from, to)
}

// issue signs a certificate for a server or a client.
func issue(
	ca *x509.CertificateAuthority, name string, orgs []string, addrs []netip.Prefix, names []string, server bool,
	from, to time.Time,
) (tls.Certificate, error) {
	usage := stdx509.ExtKeyUsageClientAuth
	if server {
		usage = stdx509.ExtKeyUsageServerAuth
	}

	var ips []net.IP
	for _, a := range addrs {
		ips = append(ips, a.Addr().AsSlice())
	}
	ips = append(ips, net.IPv4(127, 0, 0, 1))

	pair, err := x509.NewKeyPair(ca,
		x509.CommonName(name), x509.Organization(orgs...), x509.IPAddresses(ips), x509.DNSNames(names),
		x509.NotAfter(to), x509.NotBefore(from),
		x509.KeyUsage(stdx509.KeyUsageDigitalSignature), x509.ExtKeyUsage([]stdx509.ExtKeyUsage{usage}),
	)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("issuing a certificate for %s: %w", name, err)
	}

	return *pair.Certificate, nil
}

// PKI holds what a configured node speaks TLS with.
type PKI struct {
	Server tls.Certificate
	// Client reaches other nodes; only control planes have one.
	Client *tls.Certificate
	Roots  *stdx509.CertPool
	// From is when its certificates begin to be valid.
	From time.Time
}

// New issues a node's API certificates from the operating system's authority.
func New(
	ca *x509.PEMEncodedCertificateAndKey, accepted []*x509.PEMEncodedCertificate,
	controlPlane bool, hostname string, addrs []netip.Prefix, sans []string,
	from, to time.Time,
) (*PKI, error) {
	if ca == nil || len(ca.Crt) == 0 || len(ca.Key) == 0 {
		return nil, errors.New("the authority of the Talos API has no key")
	}

	authority, err := x509.NewCertificateAuthorityFromCertificateAndKey(ca)
	if err != nil {
		return nil, fmt.Errorf("reading the authority of the Talos API: %w", err)
	}

	roots := stdx509.NewCertPool()
	roots.AppendCertsFromPEM(ca.Crt)
	for _, a := range accepted {
		roots.AppendCertsFromPEM(a.Crt)
	}

	names := []string{hostname}
	for _, s := range sans {
		if ip, err := netip.ParseAddr(s); err == nil {
			addrs = append(addrs, netip.PrefixFrom(ip, ip.BitLen()))
		} else {
			names = append(names, s)
		}
	}

	p := &PKI{Roots: roots, From: from}
	if p.Server, err = issue(authority, hostname, nil, addrs, names, true, from, to); err != nil {
		return nil, err
	}
	if controlPlane {
		client, err := issue(authority, "apid", []string{string(role.Impersonator)}, addrs, names, false, from, to)
		if err != nil {
			return nil, err
		}
		p.Client = &client
	}

	return p, nil
}

// SameCertificate compares PEM certificates, whatever white space is around them.
func SameCertificate(a, b []byte) bool {
	return len(a) > 0 && bytes.Equal(bytes.TrimSpace(a), bytes.TrimSpace(b))
}
