// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package image_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/image"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

func TestLocations(t *testing.T) {
	t.Parallel()

	const id = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"
	for name, c := range map[string]struct {
		image                      spec.Image
		url, installer, file, zips string
	}{
		"the public factory": {
			image:     spec.Image{},
			url:       "https://factory.talos.dev/image/" + id + "/v1.12.4/nocloud-amd64.iso",
			installer: "factory.talos.dev/nocloud-installer/" + id + ":v1.12.4",
			file:      "talos-dev-v1.12.4-ce4c980550dd-nocloud-amd64.iso",
		},
		"mirrors": {
			image: spec.Image{
				ISOMirror: spec.Ptr("https://proxy.example.com/"), InstallerMirror: spec.Ptr("harbor.example.com/talos"),
			},
			url:       "https://proxy.example.com/factory.talos.dev/image/" + id + "/v1.12.4/nocloud-amd64.iso",
			installer: "harbor.example.com/talos/nocloud-installer/" + id + ":v1.12.4",
			file:      "talos-dev-v1.12.4-ce4c980550dd-nocloud-amd64.iso",
		},
		"an own factory, secure boot, metal": {
			image: spec.Image{
				FactoryURL: spec.Ptr("http://factory.example.com:8080"), SecureBoot: spec.Ptr(true), Platform: spec.Ptr("metal"),
			},
			url:       "http://factory.example.com:8080/image/" + id + "/v1.12.4/metal-amd64-secureboot.iso",
			installer: "factory.example.com:8080/metal-installer-secureboot/" + id + ":v1.12.4",
			file:      "talos-dev-v1.12.4-ce4c980550dd-metal-amd64-secureboot.iso",
		},
		"a packed disk image": {
			image:     spec.Image{Boot: spec.Ptr("disk"), Arch: spec.Ptr("arm64")},
			url:       "https://factory.talos.dev/image/" + id + "/v1.12.4/nocloud-arm64.raw.zst",
			installer: "factory.talos.dev/nocloud-installer/" + id + ":v1.12.4",
			file:      "talos-dev-v1.12.4-ce4c980550dd-nocloud-arm64-raw-zst.img",
			zips:      "zst",
		},
		"a disk image that is not packed": {
			image:     spec.Image{Boot: spec.Ptr("disk"), DiskFormat: spec.Ptr("qcow2")},
			url:       "https://factory.talos.dev/image/" + id + "/v1.12.4/nocloud-amd64.qcow2",
			installer: "factory.talos.dev/nocloud-installer/" + id + ":v1.12.4",
			file:      "talos-dev-v1.12.4-ce4c980550dd-nocloud-amd64-qcow2.img",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.url, image.DownloadURL(c.image, id, version))
			assert.Equal(t, c.installer, image.Installer(c.image, id, version))
			assert.Equal(t, c.file, image.FileName("dev", spec.DefaultImage, id, version, c.image))
			assert.Equal(t, c.zips, image.Decompression(c.image))
		})
	}
}

func TestVariantsHaveFilesOfTheirOwn(t *testing.T) {
	t.Parallel()

	assert.Equal(t, "talos-dev-gpu-v1.12.4-376567988ad3-nocloud-amd64.iso",
		image.FileName("dev", "gpu", vanilla, version, spec.Image{}))
}

func TestValidate(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		image    spec.Image
		problems []string
	}{
		"a good one": {spec.Image{
			Extensions: []string{"lldp", "qemu-guest-agent"}, Checksum: spec.Ptr("sha256:" + vanilla), Meta: map[string]string{"0xa": "x"},
			InstallerMirror: spec.Ptr("harbor.example.com:5000/talos"), ISOMirror: spec.Ptr("https://proxy.example.com/"),
		}, nil},
		"twice the same": {spec.Image{Extensions: []string{"lldp", "siderolabs/lldpd"}}, []string{
			"images.default.extensions[1]: siderolabs/lldpd is named twice, first by extensions[0]",
		}},
		"meta keys": {spec.Image{Meta: map[string]string{"10": "a", "0xa": "b", "big": "c"}}, []string{
			`images.default.meta: "0xa" and "10" are the same key`,
			`images.default.meta: "big" is no META key: write a number up to 255, such as "10" or "0x0a"`,
		}},
		"an ISO for arm64": {spec.Image{Arch: spec.Ptr("arm64")}, []string{
			"images.default.boot: arm64 VMs have no IDE drive to boot an ISO from: set boot to disk",
		}},
		"a file beside settings": {spec.Image{SchematicFile: spec.Ptr("agent.yaml"), KernelArgs: []string{"a"}}, []string{
			"images.default.kernelArgs: cannot stand beside schematicFile: write it in that file",
		}},
		"a file with a mistake": {spec.Image{SchematicFile: spec.Ptr("broken.yaml")}, []string{
			`images.default.schematicFile: decoding schematic file "broken.yaml": yaml: unmarshal errors:` + "\n" +
				"  line 1: field customisation not found in type image.document",
		}},
		"no file": {spec.Image{SchematicFile: spec.Ptr("lost.yaml")}, []string{
			`images.default.schematicFile: reading schematic file "lost.yaml": no such file`,
		}},
		"addresses": {spec.Image{
			FactoryURL: spec.Ptr("factory.example.com"), ISOMirror: spec.Ptr("proxy"), InstallerMirror: spec.Ptr("https://harbor"),
		}, []string{
			`images.default.factoryUrl: "factory.example.com" is no address: write one such as https://factory.example.com`,
			`images.default.installerMirror: "https://harbor" is no registry: write host and path without a scheme, ` +
				"such as harbor.example.com/talos",
			`images.default.isoMirror: "proxy" is no address: write one such as https://factory.example.com`,
		}},
		"checksums": {spec.Image{Checksum: spec.Ptr("md5:abc")}, []string{
			`images.default.checksum: must begin with "sha256:" or "sha512:"`,
		}},
		"a short checksum": {spec.Image{Checksum: spec.Ptr("sha256:abc")}, []string{
			`images.default.checksum: must have 64 hexadecimal digits after "sha256:"`,
		}},
		"secure boot with grub": {spec.Image{SecureBoot: spec.Ptr(true), Bootloader: spec.Ptr("grub")}, []string{
			"images.default.bootloader: secure boot works with sd-boot only, got grub",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l check.List
			image.Validate("images.default", c.image, version, files, &l)
			var got []string
			for _, problem := range l.Problems() {
				got = append(got, problem.String())
			}
			assert.Equal(t, c.problems, got)
		})
	}
}
