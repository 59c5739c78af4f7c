// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package env_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/daemon"
	"github.com/talos-proxmox/talos-proxmox/lab/env"
)

func TestTheEnvironmentLeadsIntoTheLab(t *testing.T) {
	t.Parallel()

	lab := daemon.Info{Site: t.TempDir(), Gateway: "http://127.0.0.1:1", Bundle: "/b.pem", Token: "root@pam!lab=1", Socks: "127.0.0.1:2", GitToken: "git"}
	e, err := env.New(lab, "/tools", []string{
		"PATH=/usr/bin", "HTTPS_PROXY=http://corporate:3128", "ALL_PROXY=socks5://corporate", "HOME=/home/me",
	})
	require.NoError(t, err)

	assert.Equal(t, env.Environment{
		"HOME": "/home/me", "PATH": "/tools:/usr/bin", "LAB_SITE": lab.Site,
		"HELM_CACHE_HOME": filepath.Join(lab.Site, "helm"), "TALOS_PROXMOX_CHART_CACHE": filepath.Join(lab.Site, "charts"),
		"TALOS_PROXMOX_CHART_LOCK": filepath.Join(lab.Site, "charts.lock.yaml"),
		"HTTPS_PROXY":              lab.Gateway, "HTTP_PROXY": lab.Gateway, "https_proxy": lab.Gateway, "http_proxy": lab.Gateway,
		"NO_PROXY": "localhost,127.0.0.1,::1", "no_proxy": "localhost,127.0.0.1,::1",
		"SSL_CERT_FILE": lab.Bundle, "CURL_CA_BUNDLE": lab.Bundle, "GIT_SSL_CAINFO": lab.Bundle,
		"REQUESTS_CA_BUNDLE": lab.Bundle, "NODE_EXTRA_CA_CERTS": lab.Bundle,
		"LAB_GIT_TOKEN": "git", "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "http.extraHeader",
		"GIT_CONFIG_VALUE_0":           "Authorization: Basic bGFiOmdpdA==",
		"GIT_SSH_COMMAND":              "ssh -o ProxyCommand='/tools/lab connect %h %p'",
		"PROXMOX_VE_SSH_SOCKS5_SERVER": "127.0.0.1:2",
		"PROXMOX_VE_API_TOKEN":         lab.Token, "PULUMI_CONFIG_PASSPHRASE": "lab",
		"PULUMI_BACKEND_URL":                          "file://" + filepath.Join(lab.Site, "pulumi-state") + "?metadata=skip",
		"PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true", "PULUMI_SKIP_UPDATE_CHECK": "true",
	}, e)
}

func TestAUsersPassphraseAndTokenStay(t *testing.T) {
	t.Parallel()

	lab := daemon.Info{Site: t.TempDir(), Token: "root@pam!lab=1"}
	e, err := env.New(lab, "/tools", []string{"PULUMI_CONFIG_PASSPHRASE_FILE=/mine", "PROXMOX_VE_API_TOKEN=mine"})
	require.NoError(t, err)
	assert.NotContains(t, e, "PULUMI_CONFIG_PASSPHRASE")
	assert.Equal(t, "mine", e["PROXMOX_VE_API_TOKEN"])
}

func TestCommandsAreFoundOnTheEnvironmentsPath(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tool"), nil, 0o700))
	e := env.Environment{"PATH": "/nowhere:" + dir}

	path, err := e.LookPath("tool")
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(dir, "tool"), path)

	_, err = e.LookPath("missing")
	require.EqualError(t, err, "there is no command \"missing\" on the PATH; `make tools` builds the project's own")
}
