// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package spec

import "slices"

// EtcdBackup takes snapshots of etcd on a schedule, encrypts them with age and puts them into S3-compatible storage, as a
// day-0 manifest: github.com/siderolabs/talos-backup. Talos lets its pods take snapshots, and nothing else.
type EtcdBackup struct {
	// Schedule in the form of cron, in UTC.
	Schedule *string `json:"schedule,omitempty" default:"0 */6 * * *"`
	// AgeRecipient is who can read the snapshots: the public key (age1…) that `age-keygen` prints. Keep its private half
	// outside the cluster and outside its state; `tpx restore` needs it.
	AgeRecipient string `json:"ageRecipient"`
	// S3 is where the snapshots go.
	S3 S3 `json:"s3"`
	// Namespace of the job; it is made when it is not there.
	Namespace *string `json:"namespace,omitempty" default:"talos-backup"`
	// Image of talos-backup.
	Image *string `json:"image,omitempty" default:"ghcr.io/siderolabs/talos-backup:v0.1.0-beta.3"`
}

// S3 is a bucket of S3-compatible storage.
type S3 struct {
	// Bucket that is there already; who removes old snapshots is the bucket's own rule.
	Bucket string `json:"bucket"`
	// Endpoint of storage that is not Amazon's, "https://s3.example.com:9000".
	Endpoint *string `json:"endpoint,omitempty"`
	// Region of the bucket; most other storage takes any.
	Region *string `json:"region,omitempty" default:"us-east-1"`
	// Prefix of the snapshots' names; the cluster's name when unset.
	Prefix *string `json:"prefix,omitempty"`
	// AccessKeyID of somebody who may write to the bucket, and need not read it.
	AccessKeyID string `json:"accessKeyId"`
	// SecretAccessKey of AccessKeyID.
	SecretAccessKey Secret `json:"secretAccessKey"`
}

// EtcdBackupRole is the Talos role that backups of etcd need.
const EtcdBackupRole = "os:etcd:backup"

// TalosAPIAccess returns the roles that pods may ask for at the Talos API, and the namespaces of such pods: those of
// the settings, and what backups of etcd need. There are no roles where no pod may ask.
func (c Config) TalosAPIAccess() (roles, namespaces []string) {
	if access := c.Talos.APIAccess; access != nil && Value(access.Enabled) {
		roles, namespaces = slices.Clone(access.Roles), slices.Clone(access.Namespaces)
		if len(roles) == 0 {
			roles = []string{"os:reader"}
		}
	}
	if c.Kubernetes.Etcd == nil || c.Kubernetes.Etcd.Backup == nil {
		return roles, namespaces
	}
	if !slices.Contains(roles, EtcdBackupRole) {
		roles = append(roles, EtcdBackupRole)
	}
	if namespace := Value(c.Kubernetes.Etcd.Backup.Namespace); !slices.Contains(namespaces, namespace) {
		namespaces = append(namespaces, namespace)
	}

	return roles, namespaces
}
