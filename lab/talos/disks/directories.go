// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package disks

import (
	"os"
	"path"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
)

// directory describes a folder that Talos keeps as a volume; its parent is the next one above it, or EPHEMERAL.
type directory struct {
	path, label string
	mode        os.FileMode
	owner       int
	recursive   bool
}

func directories() []directory {
	const seccomp, ephemeral = "seccomp_profile_t", "ephemeral_t"

	return []directory{
		{"/var/lib", ephemeral, 0o700, 0, false},
		{"/var/lib/cni", "cni_state_t", 0o700, 0, true},
		{"/var/lib/containerd", "containerd_state_t", 0, 0, false},
		{"/var/lib/kubelet", "kubelet_state_t", 0o700, 0, false},
		{"/var/lib/kubelet/seccomp", seccomp, 0o700, 0, false},
		{"/var/lib/kubelet/seccomp/profiles", seccomp, 0o700, 0, true},
		{"/var/log", "var_log_t", 0o755, 0, false},
		{"/var/log/audit", "audit_log_t", 0o700, 0, false},
		{"/var/log/audit/kube", "kube_log_t", 0o700, constants.KubernetesAPIServerRunUser, true},
		{"/var/log/containers", "containers_log_t", 0o755, 0, false},
		{"/var/log/pods", "pods_log_t", 0o755, 0, false},
		{"/var/mnt", ephemeral, 0o755, 0, false},
		{"/var/run/lock", "var_lock_t", 0o755, 0, false},
	}
}

// Directories returns the volumes that are no partitions, by their ID: folders, a link, and overlays.
func Directories() map[string]block.VolumeStatusSpec {
	const object = "system_u:object_r:"
	volumes := map[string]block.VolumeStatusSpec{
		constants.EtcdDataVolumeID: {
			Phase: block.VolumePhaseReady, Type: block.VolumeTypeDirectory, MountSpec: block.MountSpec{
				TargetPath: path.Base(constants.EtcdDataPath), ParentID: path.Dir(constants.EtcdDataPath),
				SelinuxLabel: constants.EtcdDataSELinuxLabel, FileMode: 0o700, UID: constants.EtcdUserID, GID: constants.EtcdUserID,
				RecursiveRelabel: true,
			},
		},
		"/var/run": {
			Phase: block.VolumePhaseReady, Type: block.VolumeTypeSymlink, MountSpec: block.MountSpec{TargetPath: "/var/run"},
			SymlinkSpec: block.SymlinkProvisioningSpec{SymlinkTargetPath: "/run", Force: true},
		},
	}
	for _, d := range directories() {
		parent := path.Dir(d.path)
		if parent == "/var" {
			parent = constants.EphemeralPartitionLabel
		}
		volumes[d.path] = block.VolumeStatusSpec{
			Phase: block.VolumePhaseReady, Type: block.VolumeTypeDirectory, MountSpec: block.MountSpec{
				TargetPath: path.Base(d.path), ParentID: parent, SelinuxLabel: object + d.label + ":s0", FileMode: d.mode,
				UID: d.owner, GID: d.owner, RecursiveRelabel: d.recursive,
			},
		}
	}
	for overlay, label := range map[string]string{
		"/etc/cni": "cni_conf_t", "/etc/kubernetes": "k8s_conf_t", "/opt": "opt_t", "/usr/libexec/kubernetes": "k8s_plugin_t",
	} {
		volumes[overlay] = block.VolumeStatusSpec{
			Phase: block.VolumePhaseReady, Type: block.VolumeTypeOverlay, ParentID: constants.EphemeralPartitionLabel,
			MountSpec: block.MountSpec{TargetPath: overlay, SelinuxLabel: object + label + ":s0", FileMode: 0o755},
		}
	}

	return volumes
}
