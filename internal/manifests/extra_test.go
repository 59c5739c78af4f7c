// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package manifests_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

func TestHeadersDoNotFollowToAnotherHost(t *testing.T) {
	t.Parallel()
	var got []string
	answer := func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("PRIVATE-TOKEN"))
		_, _ = w.Write([]byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}"))
	}
	other := httptest.NewServer(http.HandlerFunc(answer))
	defer other.Close()
	meant := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, other.URL, http.StatusFound)

			return
		}
		answer(w, r)
	}))
	defer meant.Close()
	headers := map[string]spec.Secret{"PRIVATE-TOKEN": spec.NewSecret("token")}

	for _, path := range []string{"/here", "/away"} {
		_, err := manifests.Fetcher{}.Manifest(t.Context(), meant.URL+path, headers)
		require.NoError(t, err)
	}
	assert.Equal(t, []string{"token", ""}, got)
}

func TestHeadersAreForOneHost(t *testing.T) {
	t.Parallel()
	cfg := spec.Config{}.WithDefaults()
	cfg.Manifests.ExtraHeaders = map[string]spec.Secret{"PRIVATE-TOKEN": spec.NewSecret("token")}
	cfg.Manifests.Extra = []string{"https://git.example.com/a.yaml", "https://git.example.com/b.yaml"}
	_, err := manifests.ExtraURLs(cfg)
	require.NoError(t, err)

	cfg.Manifests.Extra = append(cfg.Manifests.Extra, "https://elsewhere.example.com/c.yaml")
	_, err = manifests.ExtraURLs(cfg)
	assert.EqualError(t, err, "manifests.extraHeaders: control planes would send them to git.example.com and to elsewhere.example.com: "+
		"fetch everything from one host, or write manifests inline; cni.cilium.gatewayApi.crds takes files")
}
