// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/siderolabs/talos/pkg/machinery/version"
	"golang.org/x/sys/unix"
)

// volumes lists the folders of a node that outlive a reboot, as a container engine's volumes do.
var volumes = []string{"var", "system/state", "etc/cni", "etc/kubernetes", "usr/libexec/kubernetes", "opt"}

// mount describes one mount; one without a kind binds a folder or changes how one is mounted.
type mount struct {
	source, target, kind string
	flags                uintptr
	data                 string
}

func (m mount) do() error {
	if err := unix.Mount(m.source, m.target, m.kind, m.flags, m.data); err != nil {
		return fmt.Errorf("mounting %s%s at %s: %w", m.kind, m.source, m.target, err)
	}

	return nil
}

// files holds what machined reads from its root file system. The configurations of containerd are Talos's own (hack/ in its
// sources), but for the plug-ins that this containerd is built without.
var files = map[string]string{
	"usr/etc/in-container":       "", // how machined knows that it runs in a container
	"etc/containerd/config.toml": containerdConfig,
	"etc/cri/containerd.toml": "version = 3\n\nimports = [\"/etc/cri/conf.d/cri.toml\"]\n\n" +
		"[debug]\n  level = \"info\"\n  format = \"json\"\n",
	"etc/cri/conf.d/00-base.part": criConfig,
	// What machined mounts its own files over.
	"etc/cri/conf.d/cri.toml": "", "etc/cri/conf.d/01-registries.part": "", "etc/cri/conf.d/20-customization.part": "",
	"etc/cri/conf.d/base-spec.json": "", "etc/extensions.yaml": "", "etc/resolv.conf": "", "etc/hosts": "", "etc/hostname": "",
	"etc/machine-id": "", "etc/ssl/certs/ca-certificates.crt": "", "etc/selinux/targeted/contexts/files/file_contexts": "",
	"etc/nfsmount.conf": "", "etc/iscsi/initiatorname.iscsi": "", "etc/nvme/hostid": "", "etc/nvme/hostnqn": "",
}

// containerdConfig is that of the containerd of Talos's own services, without what runs pods.
const containerdConfig = `version = 3

disabled_plugins = [
  "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri",
  "io.containerd.grpc.v1.sandbox-controllers", "io.containerd.grpc.v1.sandboxes", "io.containerd.internal.v1.opt",
  "io.containerd.monitor.container.v1.restart", "io.containerd.nri.v1.nri", "io.containerd.podsandbox.controller.v1.podsandbox",
  "io.containerd.sandbox.controller.v1.shim", "io.containerd.sandbox.store.v1.local",
]

[debug]
  level = "info"
  format = "json"
`

// criConfig is that of the containerd which runs pods.
const criConfig = `version = 3

[plugins."io.containerd.cri.v1.images"]
  discard_unpacked_layers = true
  use_local_image_pull = true

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  base_runtime_spec = "/etc/cri/conf.d/base-spec.json"

[plugins."io.containerd.nri.v1.nri"]
  disable = true
`

// folders lists mount points and what machined expects to be there.
var folders = []string{
	"proc", "sys", "dev", "run", "tmp", "system", "boot/EFI", "mnt", ".extra", "usr/lib", "usr/lib/udev/rules.d", "usr/lib/modules", "usr/etc/udev",
	"usr/local/lib/kubelet/credentialproviders", "usr/local/share", "usr/share/zoneinfo/Etc", "usr/share/spdx", "etc/cri/conf.d/hosts",
	"var", "etc/cni/net.d", "etc/kubernetes/manifests", "usr/libexec/kubernetes", "opt/containerd/bin", "opt/containerd/lib",
}

// buildRoot makes the root file system that all nodes share, with binaries bound into it.
func buildRoot(root, binaries string) error {
	for _, d := range folders {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			return fmt.Errorf("making the root file system: %w", err)
		}
	}
	for name, content := range files {
		if err := writeFile(filepath.Join(root, name), content); err != nil {
			return err
		}
	}
	release, err := version.OSRelease()
	if err == nil {
		err = writeFile(filepath.Join(root, "etc/os-release"), string(release))
	}
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	programs := map[string]string{
		"usr/bin/init": "machined", "usr/bin/poweroff": "machined", "usr/bin/shutdown": "machined", "usr/bin/dashboard": "machined",
		"usr/bin/containerd": "containerd", "usr/bin/containerd-shim-runc-v2": "containerd-shim-runc-v2",
	}
	for target, name := range programs {
		if err := bindFile(filepath.Join(binaries, name), filepath.Join(root, target)); err != nil {
			return err
		}
	}
	// runc runs a sealed copy of itself, for which it looks beneath what is mounted over its file.
	if err := copyFile(filepath.Join(binaries, "runc"), filepath.Join(root, "usr/libexec/runc")); err != nil {
		return err
	}
	if err := bindFile(self, filepath.Join(root, "usr/bin/runc")); err != nil {
		return err
	}
	for link, target := range map[string]string{
		"bin": "usr/bin", "sbin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib", "usr/sbin": "bin", "usr/lib64": "lib",
		"etc/ssl/certs/ca-certificates": "ca-certificates.crt",
	} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			return fmt.Errorf("making the root file system: %w", err)
		}
	}

	return nil
}

func writeFile(path, content string) error {
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(content), 0o644)
	}
	if err != nil {
		return fmt.Errorf("making the root file system: %w", err)
	}

	return nil
}

// bindFile shows a file at another place, which saves a copy of it.
func bindFile(source, target string) error {
	if err := writeFile(target, ""); err != nil {
		return err
	}
	m := mount{source: source, target: target, flags: unix.MS_BIND}

	return m.do()
}

func copyFile(source, target string) error {
	content, err := os.ReadFile(source)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(target), 0o755)
	}
	if err == nil {
		err = os.WriteFile(target, content, 0o755)
	}
	if err != nil {
		return fmt.Errorf("making the root file system: %w", err)
	}

	return nil
}
