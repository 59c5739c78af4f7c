// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package access_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/access"
	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/state"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

// credentials returns a cluster with credentials as Talos writes them.
func credentials(name, server string) state.Cluster {
	return state.Cluster{
		Cluster: cluster.Cluster{Name: name},
		Kubeconfig: strings.NewReplacer("NAME", name, "SERVER", server).Replace(`apiVersion: v1
kind: Config
current-context: admin@NAME
clusters: [{name: NAME, cluster: {server: "SERVER"}}]
users: [{name: admin@NAME, user: {token: t}}]
contexts: [{name: admin@NAME, context: {cluster: NAME, user: admin@NAME}}]
`),
		Talosconfig: strings.NewReplacer("NAME", name, "SERVER", server).Replace(`context: NAME
contexts: {NAME: {endpoints: ["10.0.0.1"], ca: "SERVER", crt: b, key: c}}
`),
	}
}

func TestFilesAreTheirOwnersAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	to := access.Files{Kubeconfig: filepath.Join(dir, "new", "kubeconfig"), Talosconfig: filepath.Join(dir, "talosconfig")}
	var out bytes.Buffer
	require.NoError(t, access.Write(credentials("blue", "https://blue:6443"), to, false, &out))
	assert.NotContains(t, out.String(), "token")
	for _, path := range []string{to.Kubeconfig, to.Talosconfig} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode())
	}

	require.NoError(t, access.Write(credentials("blue", "https://blue:6443"), to, false, &out), "the same again")
	other := credentials("blue", "https://other:6443")
	assert.ErrorContains(t, access.Write(other, to, false, &out), "is there and holds something else: give --force")
	require.NoError(t, access.Write(other, to, true, &out))

	err := access.Write(state.Cluster{Cluster: cluster.Cluster{Name: "new"}}, to, true, &out)
	assert.ErrorContains(t, err, `the state has no kubeconfig of cluster "new": no up has ended well yet`)
}

func TestMergeKeepsOtherClusters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	into := access.Files{Kubeconfig: filepath.Join(dir, "config"), Talosconfig: filepath.Join(dir, "talos", "config")}
	var out bytes.Buffer
	require.NoError(t, access.Merge(credentials("blue", "https://blue:6443"), into, false, &out))
	require.NoError(t, access.Merge(credentials("green", "https://green:6443"), into, false, &out))

	kube, err := clientcmd.LoadFromFile(into.Kubeconfig)
	require.NoError(t, err)
	assert.Len(t, kube.Contexts, 2)
	assert.Equal(t, "admin@green", kube.CurrentContext)
	talos, err := clientconfig.Open(into.Talosconfig)
	require.NoError(t, err)
	assert.Len(t, talos.Contexts, 2)
	assert.Equal(t, "green", talos.Context)

	again := credentials("blue", "https://elsewhere:6443")
	assert.ErrorContains(t, access.Merge(again, into, false, &out), `has a cluster "blue" at https://blue:6443: give --force`)
	into.Kubeconfig = ""
	assert.ErrorContains(t, access.Merge(again, into, false, &out), `has a context "blue" of another cluster: give --force`)
	require.NoError(t, access.Merge(again, into, true, &out))
}
