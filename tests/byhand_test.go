// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// byHand does something to a VM of the small cluster as an operator does who clicks in Proxmox VE.
func (s *site) byHand(method, path string, form url.Values) map[string]any {
	s.t.Helper()

	env := map[string]string{}
	for line := range strings.Lines(s.must("env").stdout) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		env[key] = value
	}
	proxy, err := url.Parse(env["HTTPS_PROXY"])
	require.NoError(s.t, err)
	bundle, err := os.ReadFile(env["SSL_CERT_FILE"])
	require.NoError(s.t, err)
	roots := x509.NewCertPool()
	require.True(s.t, roots.AppendCertsFromPEM(bundle))
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}}

	req, err := http.NewRequestWithContext(s.t.Context(), method,
		"https://pve1.example.com:8006/api2/json"+path, strings.NewReader(form.Encode()))
	require.NoError(s.t, err)
	req.Header.Set("Authorization", "PVEAPIToken="+env["PROXMOX_VE_API_TOKEN"])
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := client.Do(req)
	require.NoError(s.t, err)
	defer res.Body.Close() //nolint:errcheck // read below
	require.Equal(s.t, http.StatusOK, res.StatusCode, "%s %s: %s", method, path, res.Status)
	var answer struct {
		Data any `json:"data"`
	}
	require.NoError(s.t, json.NewDecoder(res.Body).Decode(&answer))
	data, _ := answer.Data.(map[string]any)

	return data
}

// power changes a VM's power by hand and waits until it has.
func (s *site) power(id int, what, becomes string) {
	s.t.Helper()

	path := fmt.Sprintf("/nodes/pve1/qemu/%d/status/", id)
	s.byHand(http.MethodPost, path+what, nil)
	require.Eventually(s.t, func() bool {
		return s.byHand(http.MethodGet, path+"current", nil)["status"] == becomes
	}, time.Minute, 100*time.Millisecond)
}
