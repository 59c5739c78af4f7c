// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rules_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// imageFiles returns the schematic files of a project.
func imageFiles(name string) ([]byte, error) {
	text, ok := map[string]string{
		"agent.yaml":  "customization:\n  systemExtensions:\n    officialExtensions: [siderolabs/qemu-guest-agent]\n",
		"broken.yaml": "customisation: {}\n",
	}[name]
	if !ok {
		return nil, errors.New("no such file")
	}

	return []byte(text), nil
}

func TestImages(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		image    spec.Image
		problems []string
	}{
		"a good one": {spec.Image{
			Extensions: []string{"lldp", "qemu-guest-agent"}, Checksum: spec.Ptr("sha256:" + strings.Repeat("0", 64)), Meta: map[string]string{"0xa": "x"},
			InstallerMirror: spec.Ptr("harbor.example.com:5000/talos"), ISOMirror: spec.Ptr("https://proxy.example.com/"),
		}, nil},
		"twice the same": {spec.Image{Extensions: []string{"lldp", "siderolabs/lldpd"}}, []string{
			"images.default.extensions[1]: siderolabs/lldpd is named twice, first by extensions[0]",
		}},
		"meta keys": {spec.Image{Meta: map[string]string{"10": "a", "0xa": "b", "big": "c"}}, []string{
			`images.default.meta.10: "0xa" and "10" are the same key`,
			`images.default.meta.big: "big" is no META key: write a number up to 255, such as "10" or "0x0a"`,
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
			spec.FillDefaults(&c.image)
			var l check.List
			rules.CheckImage("images.default", c.image, "v1.12.4", imageFiles, &l)
			var got []string
			for _, problem := range l.Problems() {
				got = append(got, problem.String())
			}
			assert.Equal(t, c.problems, got)
		})
	}
}
