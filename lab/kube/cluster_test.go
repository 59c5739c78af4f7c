// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kube_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/talos-proxmox/talos-proxmox/lab/kube"
)

func TestStartRefuses(t *testing.T) {
	t.Parallel()

	good := config(t)
	for name, c := range map[string]struct {
		edit func(*kube.Config)
		want string
	}{
		"no name": {
			func(c *kube.Config) { c.Name = "" },
			`starting Kubernetes of cluster "": Name is empty`,
		},
		"no binary": {
			func(c *kube.Config) { c.Binary = "/nowhere/bin/lab-kubernetes" },
			"starting Kubernetes of cluster \"test\": bin/lab-kubernetes is missing: run `make tools`",
		},
		"an argument of the cluster's own": {
			func(c *kube.Config) { c.APIServerArgs = map[string]string{"client-ca-file": "x"} },
			`starting Kubernetes of cluster "test": API server argument "client-ca-file" is set by the cluster itself ` +
				`and cannot be changed`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			bad := good
			c.edit(&bad)
			_, err := kube.Start(t.Context(), bad)
			require.EqualError(t, err, c.want)
		})
	}
}

func TestStartShowsTheLog(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		edit func(*kube.Config)
		want string
	}{
		"an unknown argument": {
			func(c *kube.Config) { c.APIServerArgs = map[string]string{"no-such-flag": "x"} },
			"lab-kubernetes: kube-apiserver: unknown flag: --no-such-flag",
		},
		"a newer version": {
			func(c *kube.Config) { c.Version = "v1.99.0" },
			"cannot serve v1.99.0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			bad := config(t)
			c.edit(&bad)
			_, err := kube.Start(t.Context(), bad)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestOlderVersionIsEmulated(t *testing.T) {
	t.Parallel()

	conf := config(t)
	conf.Version = "v1.31.4"
	conf.APIServerArgs = map[string]string{"advertise-address": "10.0.0.11"}
	c := start(t, conf)

	version, err := c.Discovery().ServerVersion()
	require.NoError(t, err)
	require.Equal(t, "v1.31.4", version.GitVersion)
	require.Equal(t, "31", version.Minor)

	t.Log("nobody gets in without a certificate of the cluster's CA")
	anonymous := c.AdminConfig()
	anonymous.CertData, anonymous.KeyData = nil, nil
	client, err := kubernetes.NewForConfig(anonymous)
	require.NoError(t, err)
	_, err = client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.EqualError(t, err, "Unauthorized")
}

func TestSnapshotRestores(t *testing.T) {
	t.Parallel()

	conf := config(t)
	conf.EncryptionConfig = []byte(encryption)
	conf.AuditPolicy = []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n")
	c := start(t, conf)
	_, err := c.CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "hidden"}, StringData: map[string]string{"word": "xyzzy-plugh"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	names := c.CoreV1().ConfigMaps("default")
	for _, name := range []string{"kept", "lost"} {
		if name == "lost" {
			snapshot, err := c.Snapshot(t.Context())
			require.NoError(t, err)
			conf.Restore = snapshot
			stored := unpack(t, snapshot)
			require.Contains(t, stored, "/registry/configmaps/default/kept")
			require.Contains(t, stored, "k8s:enc:secretbox:v1:key1:")
			require.NotContains(t, stored, "xyzzy-plugh")
		}
		_, err := names.Create(t.Context(), configMap(name), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	require.NoError(t, c.Stop())
	audit, err := os.ReadFile(filepath.Join(conf.Dir, "audit.log"))
	require.NoError(t, err)
	require.Contains(t, string(audit), `"requestURI":"/api/v1/namespaces/default/secrets"`)

	c = start(t, conf)
	secret, err := c.CoreV1().Secrets("default").Get(t.Context(), "hidden", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "xyzzy-plugh", string(secret.Data["word"]))
	_, err = c.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{})
	require.NoError(t, err)
	_, err = c.CoreV1().ConfigMaps("default").Get(t.Context(), "lost", metav1.GetOptions{})
	require.EqualError(t, err, `configmaps "lost" not found`)
	require.NoError(t, c.Destroy())
	require.NoDirExists(t, conf.Dir)
}

// encryption is what a cluster with encryption at rest gives its API server.
const encryption = `
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
  - resources: [secrets]
    providers:
      - secretbox: {keys: [{name: key1, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}]}
      - identity: {}
`

// unpack returns what a snapshot holds, readable where it is not encrypted.
func unpack(t *testing.T, snapshot []byte) string {
	t.Helper()

	packed, err := gzip.NewReader(bytes.NewReader(snapshot))
	require.NoError(t, err)
	raw, err := io.ReadAll(packed)
	require.NoError(t, err)

	return string(raw)
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
