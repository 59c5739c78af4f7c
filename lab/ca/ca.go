// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package ca is the lab's certificate authority. It is made once per site and signs the certificates
// of everything there that speaks HTTPS: Proxmox VE, the Image Factory, chart repositories.
package ca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	certFile   = "ca.pem"
	keyFile    = "ca.key"
	bundleFile = "ca-bundle.pem"
	lifetime   = 10 * 365 * 24 * time.Hour
)

// Authority signs certificates for the names of one site.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey

	mu     sync.Mutex
	issued map[string]*tls.Certificate
}

// Load reads the authority of a site's directory, and makes it when the directory has none. The key's
// file mode is 0600.
func Load(dir string) (*Authority, error) {
	a := &Authority{dir: dir, issued: map[string]*tls.Certificate{}}

	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, certFile), filepath.Join(dir, keyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return a, a.create()
	}
	if err != nil {
		return nil, fmt.Errorf("reading the lab's certificate authority in %s: %w", dir, err)
	}

	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("reading the lab's certificate authority in %s: %s holds no ECDSA key", dir, keyFile)
	}
	if a.cert, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
		return nil, fmt.Errorf("reading the lab's certificate authority in %s: %w", dir, err)
	}
	a.key = key

	return a, a.writeBundle()
}

func (a *Authority) create() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making the lab's certificate authority: %w", err)
	}

	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: "talos-proxmox lab", Organization: []string{"talos-proxmox lab"}},
		NotBefore:    now.Add(-time.Hour), NotAfter: now.Add(lifetime),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return fmt.Errorf("making the lab's certificate authority: %w", err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return fmt.Errorf("making the lab's certificate authority: %w", err)
	}
	a.key = key

	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("making the lab's certificate authority: %w", err)
	}
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return fmt.Errorf("making the lab's certificate authority: %w", err)
	}

	// The key goes first: without it, the certificate on disk would be of no use to a later Load.
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	if err := os.WriteFile(filepath.Join(a.dir, keyFile), keyPEM, 0o600); err != nil {
		return fmt.Errorf("making the lab's certificate authority: %w", err)
	}
	if err := os.WriteFile(filepath.Join(a.dir, certFile), a.PEM(), 0o644); err != nil { // G306: a certificate is public
		return fmt.Errorf("making the lab's certificate authority: %w", err)
	}

	return a.writeBundle()
}

// PEM returns the authority's certificate.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// Pool holds the authority's certificate alone.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)

	return pool
}

// BundlePath returns a file for SSL_CERT_FILE: the machine's own roots and the lab's.
func (a *Authority) BundlePath() string { return filepath.Join(a.dir, bundleFile) }

// Certificate returns a server certificate for a host name or an address.
func (a *Authority) Certificate(host string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()

	if c, ok := a.issued[host]; ok {
		return c, nil
	}

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("issuing a certificate for %s: %w", host, err)
	}

	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: host},
		NotBefore:    now.Add(-time.Hour), NotAfter: now.Add(365 * 24 * time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}

	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("issuing a certificate for %s: %w", host, err)
	}

	c := &tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: key}
	a.issued[host] = c

	return c, nil
}
