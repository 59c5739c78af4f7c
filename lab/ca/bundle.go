// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package ca

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
)

// systemBundles returns where Linux distributions and others keep the machine's roots, as crypto/x509 looks.
func systemBundles() []string {
	return []string{
		"/etc/ssl/certs/ca-certificates.crt",
		"/etc/pki/tls/certs/ca-bundle.crt",
		"/etc/ssl/ca-bundle.pem",
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
		"/etc/ssl/cert.pem",
	}
}

// writeBundle writes the file for SSL_CERT_FILE. That variable replaces the machine's roots, so they
// are copied into it: commands under `lab exec` go on trusting what they trusted.
func (a *Authority) writeBundle() error {
	var bundle bytes.Buffer

	candidates := systemBundles()
	if own := os.Getenv("SSL_CERT_FILE"); own != "" && own != a.BundlePath() {
		candidates = append([]string{own}, candidates...)
	}
	for _, path := range candidates {
		roots, err := os.ReadFile(path) // G304: well-known paths, or what the user's own environment names
		if err != nil {
			continue
		}
		bundle.Write(roots)
		bundle.WriteByte('\n')

		break
	}
	bundle.Write(a.PEM())

	if err := os.WriteFile(a.BundlePath(), bundle.Bytes(), 0o644); err != nil { // G306: certificates are public
		return fmt.Errorf("writing the certificate bundle: %w", err)
	}

	return nil
}

// Transport returns an HTTP transport that dials with dial and trusts the authority alone.
func (a *Authority) Transport(dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Transport {
	return &http.Transport{
		DialContext:     dial,
		TLSClientConfig: &tls.Config{RootCAs: a.Pool(), MinVersion: tls.VersionTLS12},
	}
}
