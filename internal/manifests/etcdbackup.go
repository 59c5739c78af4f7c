// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package manifests

import (
	"cmp"
	"context"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// etcdBackup takes snapshots of etcd on a schedule. The Talos service account is an object of a kind that Talos itself
// defines where pods may use its API; Talos answers it with the Secret of the same name, which must not be there before.
func (in Input) etcdBackup(context.Context) ([]part, error) {
	etcd := spec.Value(in.Config.Kubernetes.Etcd)
	if etcd.Backup == nil {
		return nil, nil
	}
	b := *etcd.Backup
	namespace := spec.Value(b.Namespace)
	meta := func(name string) object {
		return object{"name": name, "namespace": namespace, "labels": object{"app.kubernetes.io/name": backupName}}
	}
	contents := ""
	if namespace != "default" && namespace != ciliumNamespace {
		contents = namespaceObject(namespace)
	}
	contents += mustYAML(object{
		"apiVersion": "talos.dev/v1alpha1", "kind": "ServiceAccount", "metadata": meta(backupTalos),
		"spec": object{"roles": list{spec.EtcdBackupRole}},
	}) + mustYAML(object{
		"apiVersion": "v1", "kind": "Secret", "metadata": meta(backupS3), "type": "Opaque",
		"stringData": object{"AWS_ACCESS_KEY_ID": b.S3.AccessKeyID, "AWS_SECRET_ACCESS_KEY": b.S3.SecretAccessKey.Reveal()},
	}) + mustYAML(object{
		"apiVersion": "batch/v1", "kind": "CronJob", "metadata": meta(backupName),
		"spec": object{
			"schedule": spec.Value(b.Schedule), "timeZone": "Etc/UTC", "concurrencyPolicy": "Forbid",
			"successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 3,
			"jobTemplate": object{"spec": object{
				"backoffLimit": 2, "activeDeadlineSeconds": 1800,
				"template": object{
					"metadata": object{"labels": object{"app.kubernetes.io/name": backupName}},
					"spec":     backupPod(spec.Value(in.Config.Cluster.Name), b),
				},
			}},
		},
	})

	return []part{{name: "etcd-backup", contents: contents}}, nil
}

// Names of the objects.
const (
	backupName  = "talos-backup"
	backupTalos = "talos-backup-secrets"
	backupS3    = "talos-backup-s3"
)

// backupPod takes one snapshot, as the user nobody, on any node.
func backupPod(cluster string, b spec.EtcdBackup) object {
	variable := func(name, value string) object { return object{"name": name, "value": value} }
	variables := list{
		variable("CLUSTER_NAME", cluster), variable("AGE_X25519_PUBLIC_KEY", b.AgeRecipient),
		variable("BUCKET", b.S3.Bucket), variable("S3_PREFIX", cmp.Or(spec.Value(b.S3.Prefix), cluster)),
		variable("AWS_REGION", spec.Value(b.S3.Region)),
	}
	if b.S3.Endpoint != nil {
		variables = append(variables, variable("CUSTOM_S3_ENDPOINT", *b.S3.Endpoint),
			// v0.1.0-beta.3 takes "false" for yes; later ones find out by themselves.
			variable("USE_PATH_STYLE", "false"))
	}

	return object{
		"automountServiceAccountToken": false,
		"restartPolicy":                "OnFailure",
		"securityContext": object{
			"runAsNonRoot": true, "runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 1000,
			"seccompProfile": object{"type": "RuntimeDefault"},
		},
		"tolerations": list{object{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}},
		"containers": list{object{
			"name": backupName, "image": spec.Value(b.Image), "command": list{"/talos-backup"}, "workingDir": "/tmp",
			"env": variables, "envFrom": list{object{"secretRef": object{"name": backupS3}}},
			"resources": object{"requests": object{"cpu": "10m", "memory": "64Mi"}},
			"securityContext": object{
				"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": object{"drop": list{"ALL"}},
			},
			"volumeMounts": list{
				object{"name": "tmp", "mountPath": "/tmp"},
				object{"name": "talos", "mountPath": "/var/run/secrets/talos.dev", "readOnly": true},
			},
		}},
		"volumes": list{
			object{"name": "tmp", "emptyDir": object{}},
			object{"name": "talos", "secret": object{"secretName": backupTalos}},
		},
	}
}
