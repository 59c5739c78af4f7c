// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talossecrets_test

import (
	"fmt"
	"testing"
	"time"

	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/internal/talossecrets"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

func TestSecretsRoundTrip(t *testing.T) {
	t.Parallel()
	bundle, err := secrets.NewBundle(secrets.NewClock(), config.TalosVersion1_12)
	require.NoError(t, err)
	text, err := yaml.Marshal(bundle)
	require.NoError(t, err)

	parsed, err := talossecrets.Parse(string(text))
	require.NoError(t, err)
	assert.Equal(t, talossecrets.Of(bundle), parsed)
	back, err := parsed.Bundle()
	require.NoError(t, err)
	assert.Equal(t, bundle.Certs, back.Certs)
	assert.Equal(t, bundle.Secrets, back.Secrets)
	assert.Equal(t, bundle.Cluster, back.Cluster)
	assert.Equal(t, bundle.TrustdInfo, back.TrustdInfo)
}

func TestSecretsErrorsHideValues(t *testing.T) {
	t.Parallel()
	_, err := talossecrets.Parse("hunter2")
	assert.EqualError(t, err, "the secrets bundle is not what `talosctl gen secrets` writes: "+
		"line 1: cannot unmarshal !!str `…` into secrets.Bundle")
	_, err = talossecrets.Parse("cluster: {id: x, secret: y}\n")
	assert.EqualError(t, err, "the secrets bundle is not what `talosctl gen secrets` writes: secrets is required; trustdinfo is required; certs is required")
	broken := talossecrets.Secrets{}
	broken.Certs.Etcd.Cert = "hunter2!"
	_, err = broken.Bundle()
	assert.EqualError(t, err, "reading secret certs.etcd: the value is not base64")
}

func TestTalosconfig(t *testing.T) {
	t.Parallel()
	bundle, err := secrets.NewBundle(secrets.NewClock(), config.TalosVersion1_12)
	require.NoError(t, err)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	client, err := talossecrets.NewClientConfiguration(bundle, now, 24*time.Hour)
	require.NoError(t, err)
	text, err := talossecrets.Talosconfig(cluster(), client)
	require.NoError(t, err)
	parsed, err := clientconfig.FromString(text)
	require.NoError(t, err)
	require.Equal(t, "prod", parsed.Context)
	got := parsed.Contexts["prod"]
	assert.Equal(t, []string{"192.168.62.21", "192.168.62.22", "192.168.62.23"}, got.Endpoints)
	assert.Equal(t, []string{"192.168.62.21", "192.168.62.22", "192.168.62.23", "192.168.62.24"}, got.Nodes)
	assert.Equal(t, client.CaCertificate, got.CA)
	assert.Equal(t, client.ClientCertificate, got.Crt)
	assert.Equal(t, client.ClientKey, got.Key)
}

// cluster returns three control planes and a worker.
func cluster() spec.Config {
	cfg := spec.Config{Cluster: spec.Cluster{Name: spec.Ptr("prod"), VIP: spec.Ptr("192.168.62.20")}}
	for i, name := range []string{"cp-1", "cp-2", "cp-3", "worker-1"} {
		role := spec.ControlPlane
		if i == 3 {
			role = spec.Worker
		}
		cfg.Nodes = append(cfg.Nodes, spec.NamedNode{Name: name, Node: spec.Node{
			Role:     &role,
			Networks: map[string]spec.Network{"lan": {Address: spec.Ptr(fmt.Sprintf("192.168.62.%d/24", 21+i))}},
		}})
	}

	return cfg.WithDefaults()
}
