// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"regexp"
	"strings"

	"filippo.io/age"
	"github.com/robfig/cron/v3"

	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// bucketForm is what S3 takes as the name of a bucket, leaving out names that look like addresses.
var bucketForm = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// etcdBackup checks where snapshots of etcd go, and when.
func (r *rules) etcdBackup(at string, b spec.EtcdBackup) {
	if _, err := cron.ParseStandard(*b.Schedule); err != nil || strings.Contains(*b.Schedule, "TZ=") {
		r.Addf(at+".schedule", "%q is no schedule: write five fields in UTC, such as \"0 */6 * * *\"", *b.Schedule)
	}
	if b.AgeRecipient != "" {
		switch _, err := age.ParseX25519Recipient(b.AgeRecipient); {
		case strings.Contains(strings.ToUpper(b.AgeRecipient), "AGE-SECRET-KEY-"):
			r.Addf(at+".ageRecipient", "is a private key: give the public one (age1…), and keep this one away from the cluster")
		case err != nil:
			r.Addf(at+".ageRecipient", "is not an age public key: give the line age1… that `age-keygen` prints")
		}
	}
	if !scope.LabelForm.MatchString(*b.Namespace) {
		r.Addf(at+".namespace", "%q is no name of a namespace", *b.Namespace)
	}
	if access := r.Config.Talos.APIAccess; access != nil && !spec.Value(access.Enabled) {
		r.Addf("talos.apiAccess.enabled", "is false, and backups of etcd (%s) are taken through the Talos API: remove one of them", at)
	}
	r.s3(at+".s3", b.S3)
}

func (r *rules) s3(at string, s spec.S3) {
	if s.Bucket != "" && !bucketForm.MatchString(s.Bucket) {
		r.Addf(at+".bucket", "%q is no name of a bucket: 3 to 63 lower case letters, digits, dots and hyphens", s.Bucket)
	}
	if s.Endpoint != nil {
		if _, ok := scope.WebURL(*s.Endpoint, "https", "http"); !ok {
			r.Addf(at+".endpoint", "%q is no address such as https://s3.example.com:9000", *s.Endpoint)
		}
	}
	if s.Prefix != nil && (strings.Trim(*s.Prefix, "/") != *s.Prefix || *s.Prefix == "") {
		r.Addf(at+".prefix", "%q begins or ends with a slash, or is empty: write it without, such as backups/home", *s.Prefix)
	}
}
