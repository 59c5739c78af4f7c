// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package gateway_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/ca"
	"github.com/talos-proxmox/talos-proxmox/lab/gateway"
	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

type gatewayClient struct {
	net    *guest.Net
	client *http.Client
}

func start(t *testing.T) gatewayClient {
	t.Helper()

	log := slog.New(slog.DiscardHandler)
	authority, err := ca.Load(t.TempDir())
	require.NoError(t, err)
	n := guest.NewNet()
	web := &gateway.Web{}
	web.Host("charts.example.com", says("charts"))
	web.Mirror(func(path string) bool { return path == "/mirrored" }, says("mirror"))
	gateway.HTTPS(t.Context(), n, authority, log, func(_ string, port uint16) bool { return port == 8006 }, says("proxmox"))
	gateway.HTTPS(t.Context(), n, authority, log, func(_ string, port uint16) bool { return port == 443 }, web)
	gateway.HTTP(t.Context(), n, log, func(_ string, port uint16) bool { return port == 80 }, web)

	g, err := gateway.Start(n, "127.0.0.1:0", log)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	proxy, err := url.Parse(g.URL())
	require.NoError(t, err)

	return gatewayClient{n, &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: authority.Pool(), MinVersion: tls.VersionTLS13},
	}}}
}

func says(what string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprintf(w, "%s at %s", what, r.Host) })
}

func (w gatewayClient) get(t *testing.T, url string) (int, string, error) {
	t.Helper()

	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	res, err := w.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)

	return res.StatusCode, string(body), nil
}

func TestEveryNameLeadsIntoTheSite(t *testing.T) {
	t.Parallel()
	w := start(t)

	for address, want := range map[string]struct {
		code int
		body string
	}{
		"https://pve.example.com:8006/api":   {200, "proxmox at pve.example.com:8006"},
		"https://10.0.0.5:8006/api":          {200, "proxmox at 10.0.0.5:8006"},
		"https://charts.example.com/x":       {200, "charts at charts.example.com"},
		"https://proxy.example.com/mirrored": {200, "mirror at proxy.example.com"},
		"http://charts.example.com/x":        {200, "charts at charts.example.com"},
		"https://elsewhere.example.net/x":    {502, "the lab has nobody at https://elsewhere.example.net/x; nothing here leaves this machine\n"},
	} {
		code, body, err := w.get(t, address)
		require.NoError(t, err, address)
		assert.Equal(t, want.code, code, address)
		assert.Equal(t, want.body, body, address)
	}
}

func TestAddressesThatNobodyHolds(t *testing.T) {
	t.Parallel()
	w := start(t)

	_, _, err := w.get(t, "https://10.0.0.9:6443/")
	require.ErrorContains(t, err, "the lab cannot connect to 10.0.0.9:6443: no route to host")
	_, _, err = w.get(t, "https://git.example.com:2222/")
	require.ErrorContains(t, err, "the lab has nobody at git.example.com:2222; nothing here leaves this machine")

	down, err := w.net.Up(netip.MustParseAddr("10.0.0.9"), "vm 1")
	require.NoError(t, err)
	_, _, err = w.get(t, "https://10.0.0.9:8006/")
	require.ErrorContains(t, err, "the lab cannot connect to 10.0.0.9:8006: connection refused")
	down()
	code, _, err := w.get(t, "https://10.0.0.9:8006/")
	require.NoError(t, err, "once it is down, the address may be a Proxmox VE host again")
	assert.Equal(t, 200, code)
}

func TestMachinesComeBeforeServices(t *testing.T) {
	t.Parallel()
	w := start(t)

	l, err := w.net.Listen("git.example.com:80")
	require.NoError(t, err)
	server := &http.Server{Handler: says("a machine")} // G112: a test's own client
	t.Cleanup(func() { _ = server.Close() })
	go func() { _ = server.Serve(l) }()

	_, body, err := w.get(t, "http://git.example.com/")
	require.NoError(t, err)
	assert.Equal(t, "a machine at git.example.com", body)
}
