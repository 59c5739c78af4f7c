// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package image

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// DefaultFactory is the public Image Factory.
const DefaultFactory = "https://factory.talos.dev"

// ISO reports whether VMs boot the image from a CD; otherwise the disk image is imported.
func ISO(img spec.Image) bool { return spec.Value(img.Boot) == "iso" }

// Format returns the suffix of the boot file at the factory: "iso", "raw.zst", "raw.gz" or "qcow2".
func Format(img spec.Image) string {
	if ISO(img) {
		return "iso"
	}

	return spec.Value(img.DiskFormat)
}

// Decompression returns how Proxmox unpacks the downloaded file: "gz", "zst", or "" when it is not packed.
func Decompression(img spec.Image) string {
	_, packing, _ := strings.Cut(Format(img), ".")

	return packing
}

// DownloadURL returns where the boot file is: at the factory, or behind the mirror that puts the factory's
// host into the path.
func DownloadURL(img spec.Image, schematicID, talosVersion string) string {
	base := strings.TrimSuffix(spec.Value(img.FactoryURL), "/")
	if img.ISOMirror != nil {
		host := base
		if _, rest, ok := strings.Cut(base, "://"); ok {
			host = rest
		}
		base = strings.TrimSuffix(*img.ISOMirror, "/") + "/" + host
	}

	return fmt.Sprintf("%s/image/%s/%s/%s.%s", base, schematicID, talosVersion, stem(img), Format(img))
}

// stem returns the factory's name for platform, architecture and secure boot.
func stem(img spec.Image) string {
	name := spec.Value(img.Platform) + "-" + spec.Value(img.Arch)
	if spec.Value(img.SecureBoot) {
		name += "-secureboot"
	}

	return name
}

// Installer returns the container image that installs and upgrades to this schematic and version. A plain
// installer would lose the extensions.
func Installer(img spec.Image, schematicID, talosVersion string) string {
	registry := Registry(img)
	if img.InstallerMirror != nil {
		registry = strings.TrimSuffix(*img.InstallerMirror, "/")
	}
	name := spec.Value(img.Platform) + "-installer"
	if spec.Value(img.SecureBoot) {
		name += "-secureboot"
	}

	return fmt.Sprintf("%s/%s/%s:%s", registry, name, schematicID, talosVersion)
}

// Registry returns the factory's host as a container registry.
func Registry(img spec.Image) string {
	factory := spec.Value(img.FactoryURL)
	if u, err := url.Parse(factory); err == nil && u.Host != "" {
		return u.Host
	}

	return strings.TrimSuffix(factory, "/")
}

// FileName returns the boot file's name on a Proxmox datastore. It says everything that decides the
// content, so that a file is never overwritten and several versions and variants stand side by
// side; clusters and variants do not share files, so that the end of one takes nothing from another. Proxmox
// takes no other endings than .iso and .img there, a disk image in qcow2 form included.
func FileName(cluster, variant, schematicID, talosVersion string, img spec.Image) string {
	parts := []string{"talos", cluster}
	if variant != spec.DefaultImage && variant != "" {
		parts = append(parts, variant)
	}
	parts = append(parts, talosVersion, shortID(schematicID), stem(img))
	if ISO(img) {
		return strings.Join(parts, "-") + ".iso"
	}
	parts = append(parts, strings.ReplaceAll(Format(img), ".", "-"))

	return strings.Join(parts, "-") + ".img"
}

// shortID returns enough of a schematic's id to tell it from others.
func shortID(id string) string { return id[:min(len(id), 12)] }

// Checksum splits "sha256:<hex>" into algorithm and value; both are empty when none is given.
func Checksum(img spec.Image) (algorithm, value string) {
	algorithm, value, _ = strings.Cut(strings.ToLower(spec.Value(img.Checksum)), ":")

	return algorithm, value
}
