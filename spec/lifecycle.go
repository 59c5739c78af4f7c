// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package spec

// Lifecycle says how a living cluster is changed.
type Lifecycle struct {
	// ReadyTimeout bounds the wait for a healthy cluster.
	ReadyTimeout *Duration `json:"readyTimeout,omitempty" default:"15m"`
	// SkipKubernetesChecks lets the ready gate pass without ready nodes; needed with cni none.
	SkipKubernetesChecks *bool `json:"skipKubernetesChecks,omitempty"`
	// ApplyTimeout bounds the wait until a node takes its configuration.
	ApplyTimeout *Duration `json:"applyTimeout,omitempty" default:"10m"`
	// UpgradeTimeout bounds one node's upgrade, reboot included.
	UpgradeTimeout *Duration `json:"upgradeTimeout,omitempty" default:"20m"`
	// DrainTimeout bounds the drain of one node.
	DrainTimeout *Duration `json:"drainTimeout,omitempty" default:"10m"`
	// DrainPolicy is what happens when a drain does not end: fail, or go on with force.
	DrainPolicy *string `json:"drainPolicy,omitempty" enum:"fail,force" default:"fail"`
	// MaxUnavailable is how many workers may be down at once.
	MaxUnavailable *int `json:"maxUnavailable,omitempty" min:"1" default:"1"`
	// AllowReplace permits edits that replace a VM, by node: the fields that may differ
	// ("host", "vmId", "efiDisk", "tpm") or "*".
	AllowReplace map[string][]string `json:"allowReplace,omitempty"`
	// Replace rebuilds a node, by node: raise the number to do it (again). The node is drained, leaves
	// etcd and Kubernetes, gets a new VM and joins; disks with keepOnRebuild stay. One control plane, or
	// maxUnavailable workers, at a time.
	Replace map[string]int `json:"replace,omitempty"`
	// SnapshotDirectory receives a snapshot of etcd before an upgrade of Talos or Kubernetes, mode 0600;
	// none when unset. Whoever has one has every secret of the cluster.
	SnapshotDirectory *string `json:"snapshotDirectory,omitempty"`
	// SnapshotsKept is how many snapshots of this cluster the directory keeps; older ones are removed.
	SnapshotsKept *int `json:"snapshotsKept,omitempty" min:"1" default:"5"`
	// Force names nodes that may be given up although they do not answer: one that leaves is removed as it is,
	// and a cluster all of whose control planes are named counts as lost.
	Force []string `json:"force,omitempty"`
	// CallTimeout bounds one call to one node; raise it where nodes are slow to answer.
	CallTimeout *Duration `json:"callTimeout,omitempty" default:"15s"`
	// RenewCertificates has the administrator's client certificates, of the kubeconfig and of the talosconfig,
	// made anew: raise the number to do it (again). The earlier ones stay valid until they end.
	RenewCertificates *int `json:"renewCertificates,omitempty" min:"0"`
	// KubeconfigRenewal is how long before expiry client certificates are renewed.
	KubeconfigRenewal *Duration `json:"kubeconfigRenewal,omitempty" default:"720h"`
}
