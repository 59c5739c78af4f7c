// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package spec

// Image says which Talos image nodes boot. Several variants (standard, GPU) stand side by side.
type Image struct {
	// FactoryURL is the Image Factory.
	FactoryURL *string `json:"factoryUrl,omitempty" default:"https://factory.talos.dev"`
	// ISOMirror replaces scheme and host: "https://proxy.example.com/" gives
	// https://proxy.example.com/factory.talos.dev/image/….
	ISOMirror *string `json:"isoMirror,omitempty"`
	// InstallerMirror replaces the registry: "harbor.example.com/talos" gives
	// harbor.example.com/talos/nocloud-installer/<id>:<version>.
	InstallerMirror *string `json:"installerMirror,omitempty"`
	// Register registers the schematic with the factory; off where ids are pre-seeded.
	Register *bool `json:"register,omitempty" default:"true"`
	// Platform of the image. Only nocloud reads the static address from cloud-init; with metal a DHCP
	// server must hand out the node's address.
	Platform *string `json:"platform,omitempty" enum:"nocloud,metal" default:"nocloud"`
	// Arch is the CPU architecture.
	Arch *string `json:"arch,omitempty" enum:"amd64,arm64" default:"amd64"`
	// Boot is how a VM gets Talos: from the ISO onto a blank disk (an API token is enough), or by
	// importing the disk image (needs SSH to the host; the only way on arm64).
	Boot *string `json:"boot,omitempty" enum:"iso,disk" default:"iso"`
	// DiskFormat is the disk image's format. Proxmox cannot unpack xz.
	DiskFormat *string `json:"diskFormat,omitempty" enum:"raw.gz,raw.zst,qcow2" hint:"Proxmox VE cannot unpack xz" default:"raw.zst"`
	// Datastore holds the boot image: per host, or one shared datastore for all.
	Datastore *string `json:"datastore,omitempty" default:"local"`
	// DatastoreHost is the host that downloads to a shared datastore once for all hosts.
	DatastoreHost *string `json:"datastoreHost,omitempty"`
	// Extensions are official system extensions, full ("siderolabs/iscsi-tools") or short
	// ("iscsi-tools", "lldp").
	Extensions []string `json:"extensions,omitempty"`
	// KernelArgs are extra kernel arguments.
	KernelArgs []string `json:"kernelArgs,omitempty"`
	// Meta are initial META values, by key (hexadecimal or decimal number).
	Meta map[string]string `json:"meta,omitempty"`
	// Overlay is a board overlay (arm64 boards).
	Overlay *Overlay `json:"overlay,omitempty"`
	// Bootloader of the disk image.
	Bootloader *string `json:"bootloader,omitempty" enum:"auto,grub,sd-boot,dual-boot"`
	// SecureBoot uses the signed image; needs ovmf.
	SecureBoot *bool `json:"secureBoot,omitempty" default:"false"`
	// SchematicFile is a schematic as the factory takes it, relative to the project directory;
	// excludes extensions, kernelArgs, meta, overlay and bootloader.
	SchematicFile *string `json:"schematicFile,omitempty"`
	// Checksum of the downloaded file, "sha256:…" or "sha512:…".
	Checksum *string `json:"checksum,omitempty"`
}

// Overlay is a board overlay.
type Overlay struct {
	// Name of the overlay.
	Name string `json:"name"`
	// Image is the overlay's image, "siderolabs/sbc-raspberrypi".
	Image string `json:"image"`
	// Options of the overlay.
	Options map[string]string `json:"options,omitempty"`
}
