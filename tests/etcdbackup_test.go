// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
)

// Variables that make this test binary, run inside the lab, do what a pod of talos-backup does.
const (
	backupConfigEnv    = "TESTS_BACKUP_TALOSCONFIG"
	backupRecipientEnv = "TESTS_BACKUP_RECIPIENT"
	backupFileEnv      = "TESTS_BACKUP_FILE"
)

// TestEtcdIsBackedUpOnASchedule turns scheduled backups on in a living cluster, takes a snapshot with what Talos gives
// their pods, loses the only machine, and restores the cluster from the encrypted snapshot.
func TestEtcdIsBackedUpOnASchedule(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	identity, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	keyFile, snapshot := filepath.Join(t.TempDir(), "key.txt"), filepath.Join(t.TempDir(), "small.snap.age")
	require.NoError(t, os.WriteFile(keyFile, []byte(identity.String()+"\n"), 0o600))

	one := s.up("small", s.small(alone()...))
	s.must("kubectl", "--kubeconfig", one.kubeconfig, "create", "configmap", "kept", "--from-literal=a=b")
	one.file = s.small(alone("    version: v1.35.0\n", "    version: v1.35.0\n    etcd: {backup: {ageRecipient: "+identity.Recipient().String()+
		", s3: {bucket: snapshots, endpoint: 'https://s3.example.com:9000', accessKeyId: writer}}}\n")...)
	s.must("pulumi", "config", "set", "--stack", "small", "--config-file", one.file, "--secret", "--path",
		"talos-proxmox:kubernetes.etcd.backup.s3.secretAccessKey", "the-s3-key")
	one.again()
	one.isSettled()
	assert.NotContains(t, s.must("pulumi", "stack", "export", "--stack", "small").stdout, "the-s3-key")

	assert.Equal(t, "0 */6 * * *", one.field("cronjob", "talos-backup", "talos-backup", "{.spec.schedule}"))
	s.must("kubectl", "--kubeconfig", one.kubeconfig, "wait", "--for=create", "secret/talos-backup-secrets", "-n", "talos-backup", "--timeout=60s")
	text := one.field("secret", "talos-backup", "talos-backup-secrets", "{.data.config}")
	pods := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(pods, []byte(text), 0o600))
	self, err := os.Executable()
	require.NoError(t, err)
	out := s.must("env", backupConfigEnv+"="+pods, backupRecipientEnv+"="+identity.Recipient().String(), backupFileEnv+"="+snapshot,
		self, "-test.run=^TestBackupPodInLab$", "-test.v")
	require.Contains(t, out.all(), "--- PASS: TestBackupPodInLab")

	lost := s.try("pulumi", "up", "--stack", "small", "--config-file", s.impatient(one.file), "--yes", "--skip-preview", "--non-interactive",
		"--replace", s.urn("small", "small-cp-1-vm"))
	assert.NotZero(t, lost.code, "etcd is gone with the machine")
	closed := s.try("tpx", "restore", "small", "--snapshot", snapshot)
	assert.Equal(t, 2, closed.code)
	assert.Contains(t, closed.all(), "small.snap.age is encrypted: name the file with the age key that opens it, --age-key FILE")
	restored := s.must("tpx", "restore", "small", "--snapshot", snapshot, "--age-key", keyFile)
	assert.Contains(t, restored.stdout, "cp-1 (10.30.0.1) starts etcd with small.snap.age")
	one.again()
	one.hasNodes("cp-1")
	s.must("kubectl", "--kubeconfig", one.kubeconfig, "get", "configmap", "kept")
	one.isSettled()
}

// impatient returns a copy of a stack file that waits less for a healthy cluster.
func (s *site) impatient(file string) string {
	s.t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(s.t, err)
	copied := filepath.Join(s.t.TempDir(), "impatient.yaml")
	require.NoError(s.t, os.WriteFile(copied, content, 0o600))
	edit(s.t, copied, "readyTimeout: 4m", "readyTimeout: 40s")

	return copied
}

// TestBackupPodInLab does what a pod of talos-backup does with the credentials that Talos gives it, but for the bucket:
// it takes a snapshot and encrypts it. It may do nothing else.
func TestBackupPodInLab(t *testing.T) {
	path := os.Getenv(backupConfigEnv)
	if path == "" {
		t.Skip("runs inside the lab only: TestEtcdIsBackedUpOnASchedule starts it there")
	}
	cfg, err := config.Open(path)
	require.NoError(t, err)
	assert.Equal(t, []string{"talos.default"}, cfg.Contexts[cfg.Context].Endpoints)
	// In place of the service in the cluster.
	c, err := client.New(t.Context(), client.WithConfig(cfg), client.WithEndpoints("10.30.0.1"))
	require.NoError(t, err)
	defer func() { assert.NoError(t, c.Close()) }()
	ctx := client.WithNode(t.Context(), "10.30.0.1")

	_, err = c.ServiceList(ctx)
	assert.Equal(t, codes.PermissionDenied, grpcstatus.Code(err), "the role takes snapshots and does nothing else")
	recipient, err := age.ParseX25519Recipient(os.Getenv(backupRecipientEnv))
	require.NoError(t, err)
	file, err := os.OpenFile(os.Getenv(backupFileEnv), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	require.NoError(t, err)
	encrypted, err := age.Encrypt(file, recipient)
	require.NoError(t, err)
	started := time.Now()
	content, err := c.EtcdSnapshot(ctx, &machine.EtcdSnapshotRequest{})
	require.NoError(t, err)
	size, err := io.Copy(encrypted, content)
	require.NoError(t, err)
	t.Logf("%d bytes in %s", size, time.Since(started))
	require.NoError(t, encrypted.Close())
	require.NoError(t, file.Close())
}
