// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package daemon

// operations returns the names that `lab trace` prints.
func operations() []string {
	return []string{
		"etcd.join", "etcd.leave", "etcd.remove", "etcd.snapshot",
		"ha.relocate", "image.pull", "kube.manifests", "kube.start", "kubernetes.start",
		"node.down", "node.drain", "node.serving",
		"pve.download", "pve.ha", "pve.hamigrate", "pve.imgcopy", "pve.imgdel", "pve.qmclone", "pve.qmconfig", "pve.qmcreate",
		"pve.qmdestroy", "pve.qmigrate", "pve.qmmove", "pve.qmreboot", "pve.qmreset", "pve.qmshutdown", "pve.qmstart",
		"pve.qmstop", "pve.qmtemplate", "pve.resize",
		"qm.importdisk",
		"talos.apply", "talos.boot", "talos.bootstrap", "talos.halt", "talos.install", "talos.maintenance",
		"talos.reboot", "talos.reset", "talos.shutdown", "talos.upgrade",
		"vm.config", "vm.run", "volume.format", "volume.mount",
	}
}
