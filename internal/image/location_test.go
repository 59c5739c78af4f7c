// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package image_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

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
			spec.FillDefaults(&c.image)
			assert.Equal(t, c.url, image.DownloadURL(c.image, id, version))
			assert.Equal(t, c.installer, image.Installer(c.image, id, version))
			assert.Equal(t, c.file, image.FileName("dev", spec.DefaultImage, id, version, c.image))
			assert.Equal(t, c.zips, image.Decompression(c.image))
		})
	}
}

func TestVariantsHaveFilesOfTheirOwn(t *testing.T) {
	t.Parallel()
	var img spec.Image
	spec.FillDefaults(&img)

	assert.Equal(t, "talos-dev-gpu-v1.12.4-376567988ad3-nocloud-amd64.iso",
		image.FileName("dev", "gpu", vanilla, version, img))
}
