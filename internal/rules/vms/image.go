// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package vms

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/credential"
	"github.com/talos-proxmox/talos-proxmox/internal/image"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// CheckImage records what is wrong with an image, complete with its defaults, for a Talos version, at the path of the field.
// readFile reads the schematic file by its path relative to the project directory.
func CheckImage(path string, img spec.Image, talosVersion string, readFile func(string) ([]byte, error), l *check.List) {
	validateSchematic(path, img, talosVersion, readFile, l)
	validateBoot(path, img, l)
	validateLocations(path, img, l)
	validateChecksum(check.Join(path, "checksum"), img, l)
}

// exclusive are extensions that bring the same files or modules in different versions.
var exclusive = [][2]string{
	{"siderolabs/nvidia-open-gpu-kernel-modules-lts", "siderolabs/nvidia-open-gpu-kernel-modules-production"},
	{"siderolabs/nvidia-open-gpu-kernel-modules-lts", "siderolabs/nonfree-kmod-nvidia-lts"},
	{"siderolabs/nvidia-open-gpu-kernel-modules-lts", "siderolabs/nonfree-kmod-nvidia-production"},
	{"siderolabs/nvidia-open-gpu-kernel-modules-production", "siderolabs/nonfree-kmod-nvidia-lts"},
	{"siderolabs/nvidia-open-gpu-kernel-modules-production", "siderolabs/nonfree-kmod-nvidia-production"},
	{"siderolabs/nonfree-kmod-nvidia-lts", "siderolabs/nonfree-kmod-nvidia-production"},
	{"siderolabs/nvidia-container-toolkit-lts", "siderolabs/nvidia-container-toolkit-production"},
	{"siderolabs/nvidia-open-gpu-kernel-modules-lts", "siderolabs/nvidia-container-toolkit-production"},
	{"siderolabs/nvidia-open-gpu-kernel-modules-production", "siderolabs/nvidia-container-toolkit-lts"},
	{"siderolabs/nonfree-kmod-nvidia-lts", "siderolabs/nvidia-container-toolkit-production"},
	{"siderolabs/nonfree-kmod-nvidia-production", "siderolabs/nvidia-container-toolkit-lts"},
	{"siderolabs/qemu-guest-agent", "siderolabs/vmtoolsd-guest-agent"},
	{"siderolabs/qemu-guest-agent", "siderolabs/xen-guest-agent"},
}

func validateSchematic(
	path string, img spec.Image, talosVersion string, readFile func(string) ([]byte, error), l *check.List,
) {
	if img.SchematicFile != nil {
		validateSchematicFile(path, img, talosVersion, readFile, l)

		return
	}
	validateExtensions(check.Join(path, "extensions"), img.Extensions, talosVersion, l)
	numbers := map[uint8]string{}
	for key := range img.Meta {
		number, err := image.MetaKey(key)
		if err != nil {
			l.Addf(check.Key(check.Join(path, "meta"), key), "%s", err)
		} else if other, twice := numbers[number]; twice {
			l.Addf(check.Key(check.Join(path, "meta"), max(key, other)), "%q and %q are the same key", min(key, other), max(key, other))
		}
		numbers[number] = key
	}
	if img.Overlay != nil && (img.Overlay.Name == "" || img.Overlay.Image == "") {
		l.Addf(check.Join(path, "overlay"), "needs a name and an image, such as rpi_generic and siderolabs/sbc-raspberrypi")
	}
}

// validateSchematicFile checks a schematic in a file, beside which nothing else describes the image.
func validateSchematicFile(
	path string, img spec.Image, talosVersion string, readFile func(string) ([]byte, error), l *check.List,
) {
	for field, set := range map[string]bool{
		"extensions": len(img.Extensions) > 0, "kernelArgs": len(img.KernelArgs) > 0, "meta": len(img.Meta) > 0,
		"overlay": img.Overlay != nil, "bootloader": img.Bootloader != nil,
	} {
		if set {
			l.Addf(check.Join(path, field), "cannot stand beside schematicFile: write it in that file")
		}
	}
	plainSchematic(check.Join(path, "schematicFile"), *img.SchematicFile, readFile, l)
	schematic, err := image.Resolve(img, talosVersion, readFile)
	if err != nil {
		l.Addf(check.Join(path, "schematicFile"), "%s", err)
	}
	for _, name := range schematic.Extensions {
		if _, err := image.Extension(name, talosVersion); err != nil {
			l.Addf(check.Join(path, "schematicFile"), "%s", err)
		}
	}
}

// validateExtensions checks that extensions exist, that each is named once, and that they go with each other.
func validateExtensions(path string, extensions []string, talosVersion string, l *check.List) {
	seen := map[string]int{}
	for i, name := range extensions {
		at := check.Index(path, i)
		full, err := image.Extension(name, talosVersion)
		if err != nil {
			l.Addf(at, "%s", err)

			continue
		}
		if first, twice := seen[full]; twice {
			l.Addf(at, "%s is named twice, first by extensions[%d]", full, first)
		}
		seen[full] = i
	}
	for _, pair := range exclusive {
		first, one := seen[pair[0]]
		second, other := seen[pair[1]]
		if one && other {
			l.Addf(check.Index(path, max(first, second)), "%s and %s exclude each other: keep one of them", pair[0], pair[1])
		}
	}
}

// plainSchematic refuses credentials in a schematic: the factory keeps it, and whoever has its id reads it.
func plainSchematic(at, name string, readFile func(string) ([]byte, error), l *check.List) {
	if readFile == nil {
		return
	}
	text, err := readFile(name)
	if err != nil {
		return // told when it is resolved
	}
	if what, line := credential.InText(string(text)); what != "" {
		l.Addf(at, "%s, line %d, holds %s in plain text, which the factory would keep: remove it", name, line, what)
	}
}

func validateBoot(path string, img spec.Image, l *check.List) {
	if spec.Value(img.Arch) == "arm64" && image.ISO(img) {
		l.Addf(check.Join(path, "boot"), "arm64 VMs have no IDE drive to boot an ISO from: set boot to disk")
	}
	if spec.Value(img.SecureBoot) {
		if loader := spec.Value(img.Bootloader); loader != "" && loader != image.AutoBootloader && loader != "sd-boot" {
			l.Addf(check.Join(path, "bootloader"), "secure boot works with sd-boot only, got %s", loader)
		}
	}
}

func validateLocations(path string, img spec.Image, l *check.List) {
	for field, value := range map[string]*string{"factoryUrl": img.FactoryURL, "isoMirror": img.ISOMirror} {
		if value == nil {
			continue
		}
		u, err := url.Parse(*value)
		if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || u.RawQuery != "" || u.User != nil {
			l.Addf(check.Join(path, field), "%q is no address: write one such as https://factory.example.com", *value)
		}
	}
	if m := img.InstallerMirror; m != nil && !isRegistry(*m) {
		l.Addf(check.Join(path, "installerMirror"),
			"%q is no registry: write host and path without a scheme, such as harbor.example.com/talos", *m)
	}
	if img.Datastore != nil && *img.Datastore == "" {
		l.Addf(check.Join(path, "datastore"), "must name a datastore that holds ISO images")
	}
}

// isRegistry reports whether a mirror is written as host and path, without a scheme.
func isRegistry(mirror string) bool {
	return mirror != "" && !strings.Contains(mirror, "://") && (!strings.ContainsAny(mirror, " @:") || portOnly(mirror))
}

// portOnly reports whether the only colon in a registry is the one before its port.
func portOnly(registry string) bool {
	host, _, _ := strings.Cut(registry, "/")

	return !strings.ContainsAny(registry, " @") && strings.Count(registry, ":") == strings.Count(host, ":")
}

func validateChecksum(path string, img spec.Image, l *check.List) {
	if img.Checksum == nil {
		return
	}
	algorithm, value := image.Checksum(img)
	lengths := map[string]int{"sha256": 64, "sha512": 128}
	want, known := lengths[algorithm]
	if !known {
		l.Addf(path, `must begin with "sha256:" or "sha512:"`)

		return
	}
	if !regexp.MustCompile(`^[0-9a-f]+$`).MatchString(value) || len(value) != want {
		l.Addf(path, "must have %d hexadecimal digits after %q", want, algorithm+":")
	}
}
