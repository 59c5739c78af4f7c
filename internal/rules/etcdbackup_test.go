// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rules_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

func TestBackupsOfEtcd(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		change func(*spec.Config, *spec.EtcdBackup)
		want   string
	}{
		"nothing wrong": {change: func(*spec.Config, *spec.EtcdBackup) {}},
		"a time zone": {
			func(_ *spec.Config, b *spec.EtcdBackup) { b.Schedule = spec.Ptr("TZ=Europe/Berlin 0 3 * * *") },
			`kubernetes.etcd.backup.schedule: "TZ=Europe/Berlin 0 3 * * *" is no schedule: write five fields in UTC, such as "0 */6 * * *"`,
		},
		"too few fields": {
			func(_ *spec.Config, b *spec.EtcdBackup) { b.Schedule = spec.Ptr("0 3 * *") },
			`kubernetes.etcd.backup.schedule: "0 3 * *" is no schedule: write five fields in UTC, such as "0 */6 * * *"`,
		},
		"the private key": {
			func(_ *spec.Config, b *spec.EtcdBackup) { b.AgeRecipient = "AGE-SECRET-KEY-1QQPQQ" },
			"kubernetes.etcd.backup.ageRecipient: is a private key: give the public one (age1…), and keep this one away from the cluster",
		},
		"no key": {
			func(_ *spec.Config, b *spec.EtcdBackup) { b.AgeRecipient = "me" },
			"kubernetes.etcd.backup.ageRecipient: is not an age public key: give the line age1… that `age-keygen` prints",
		},
		"a bucket in capitals": {
			func(_ *spec.Config, b *spec.EtcdBackup) { b.S3.Bucket = "Backups" },
			`kubernetes.etcd.backup.s3.bucket: "Backups" is no name of a bucket: 3 to 63 lower case letters, digits, dots and hyphens`,
		},
		"no bucket": {
			func(_ *spec.Config, b *spec.EtcdBackup) { b.S3.Bucket = "" }, "kubernetes.etcd.backup.s3.bucket: is required",
		},
		"an endpoint without scheme": {
			func(_ *spec.Config, b *spec.EtcdBackup) { b.S3.Endpoint = spec.Ptr("s3.example.com") },
			`kubernetes.etcd.backup.s3.endpoint: "s3.example.com" is no address such as https://s3.example.com:9000`,
		},
		"a prefix with slashes": {
			func(_ *spec.Config, b *spec.EtcdBackup) { b.S3.Prefix = spec.Ptr("/a/") },
			`kubernetes.etcd.backup.s3.prefix: "/a/" begins or ends with a slash, or is empty: write it without, such as backups/home`,
		},
		"access turned off": {
			func(c *spec.Config, _ *spec.EtcdBackup) {
				c.Talos.APIAccess = &spec.APIAccess{Enabled: spec.Ptr(false)}
			},
			"talos.apiAccess.enabled: is false, and backups of etcd (kubernetes.etcd.backup) are taken through the Talos API: remove one of them",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &spec.EtcdBackup{
				AgeRecipient: "age1khpnnl86pzx96ttyjmldptsl5yn2v9jgmmzcjcufvk00ttkph9zs0ytgec",
				S3:           spec.S3{Bucket: "snapshots", AccessKeyID: "writer", SecretAccessKey: spec.NewSecret("s3cret")},
			}
			cfg := spec.Config{Kubernetes: spec.Kubernetes{Etcd: &spec.Etcd{Backup: b}}}
			c.change(&cfg, b)
			l := &check.List{}
			rules.Check(cfg, l)
			var found []string
			for _, p := range l.Problems() {
				if strings.HasPrefix(p.Path, "kubernetes.etcd") || strings.HasPrefix(p.Path, "talos.apiAccess") {
					found = append(found, p.Path+": "+p.Message)
				}
			}
			if c.want == "" {
				assert.Empty(t, found)

				return
			}
			assert.Equal(t, []string{c.want}, found)
		})
	}
}
