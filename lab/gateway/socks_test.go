// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package gateway_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/gateway"
	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

func TestSOCKSLeadsIntoTheSite(t *testing.T) {
	t.Parallel()

	n := guest.NewNet()
	gateway.HTTP(t.Context(), n, slog.New(slog.DiscardHandler),
		func(host string, port uint16) bool { return host == "git.example.com" && port == 80 }, says("git"))
	s, err := gateway.StartSocks(n, "127.0.0.1:0", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	proxy, err := url.Parse(s.URL())
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy), DisableKeepAlives: true}}

	get := func(address string) (string, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		require.NoError(t, err)
		res, err := client.Do(req)
		if err != nil {
			return "", err
		}
		defer func() { _ = res.Body.Close() }()
		body, err := io.ReadAll(res.Body)

		return string(body), err
	}

	body, err := get("http://git.example.com/")
	require.NoError(t, err)
	assert.Equal(t, "git at git.example.com", body)
	for _, nobody := range []string{"http://other.example.com/", "http://10.0.0.9/", "http://[2001:db8::1]/"} {
		_, err := get(nobody)
		assert.ErrorContains(t, err, "host unreachable", nobody)
	}
}
