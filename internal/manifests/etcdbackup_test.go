// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package manifests_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

var update = flag.Bool("update", false, "rewrite the recorded manifests")

// backup sends snapshots to storage that is not Amazon's.
func backup() *spec.EtcdBackup {
	return &spec.EtcdBackup{
		AgeRecipient: "age1khpnnl86pzx96ttyjmldptsl5yn2v9jgmmzcjcufvk00ttkph9zs0ytgec",
		S3: spec.S3{
			Bucket: "snapshots", Endpoint: spec.Ptr("https://s3.example.com:9000"), AccessKeyID: "writer",
			SecretAccessKey: spec.NewSecret("s3cret"),
		},
	}
}

func TestBackupOfEtcdIsTheSameEveryTime(t *testing.T) {
	t.Parallel()
	cfg := clusterConfig(func(c *spec.Config) { c.Kubernetes.Etcd = &spec.Etcd{Backup: backup()} })
	all := dayZero(t, input(t, cfg))
	require.Equal(t, []string{"001-etcd-backup"}, names(all))

	path := filepath.Join("testdata", "etcd-backup.yaml")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o750))
		require.NoError(t, os.WriteFile(path, []byte(all[0].Contents), 0o600))
		t.Error("rewritten: look at the difference, then run without -update")
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), all[0].Contents)
	images, err := manifests.Images(all[0].Contents)
	require.NoError(t, err)
	assert.Equal(t, []string{"ghcr.io/siderolabs/talos-backup:v0.1.0-beta.3"}, images, "mirrors and lists of images know it")
}

func TestBackupsAreAllowedToTakeSnapshots(t *testing.T) {
	t.Parallel()
	roles, namespaces := clusterConfig().TalosAPIAccess()
	assert.Empty(t, roles)
	assert.Empty(t, namespaces)

	roles, namespaces = clusterConfig(func(c *spec.Config) { c.Kubernetes.Etcd = &spec.Etcd{Backup: backup()} }).TalosAPIAccess()
	assert.Equal(t, []string{"os:etcd:backup"}, roles)
	assert.Equal(t, []string{"talos-backup"}, namespaces)

	roles, namespaces = clusterConfig(func(c *spec.Config) {
		c.Kubernetes.Etcd = &spec.Etcd{Backup: backup()}
		c.Talos.APIAccess = &spec.APIAccess{Namespaces: []string{"tools", "talos-backup"}}
	}).TalosAPIAccess()
	assert.Equal(t, []string{"os:reader", "os:etcd:backup"}, roles)
	assert.Equal(t, []string{"tools", "talos-backup"}, namespaces)
}
