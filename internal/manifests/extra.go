// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package manifests

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// mostRedirects is how many redirects are followed.
const mostRedirects = 10

// Manifest downloads a manifest as control planes do, with the same headers, and returns its objects.
// Errors name the place and quote neither headers nor content.
func (f Fetcher) Manifest(ctx context.Context, place string, headers map[string]spec.Secret) ([]Object, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	u, err := url.Parse(place)
	if err != nil {
		return nil, fmt.Errorf("%s is no URL", redact(place))
	}
	client := *f.client()
	client.CheckRedirect = func(request *http.Request, via []*http.Request) error {
		if len(via) >= mostRedirects {
			return fmt.Errorf("more than %d redirects", mostRedirects)
		}
		if request.URL.Host != via[0].URL.Host {
			for name := range headers {
				request.Header.Del(name) // it is meant for the host that the stack names
			}
		}

		return nil
	}
	f.Client = &client
	content, err := f.download(ctx, u, func(request *http.Request) {
		for name, value := range headers {
			request.Header.Set(name, value.Reveal())
		}
	})
	if err != nil {
		return nil, err
	}
	found, err := objectsIn(string(content))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", redact(place), err)
	}

	return found, nil
}

// ClientTrusting asks through the usual proxy, and trusts certificates (PEM) beside the system's, as
// nodes do that were told to.
func ClientTrusting(roots map[string]spec.Text) *http.Client {
	if len(roots) == 0 {
		return nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	for _, root := range roots {
		pool.AppendCertsFromPEM([]byte(root))
	}

	return &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
	}}
}
