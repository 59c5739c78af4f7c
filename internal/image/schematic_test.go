// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package image_test

import (
	"errors"
	"testing"

	"github.com/siderolabs/image-factory/pkg/schematic"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/image"
	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

const (
	version = "v1.12.4"
	vanilla = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"
	agent   = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"
)

func files(name string) ([]byte, error) {
	text, ok := map[string]string{
		"agent.yaml":  "customization:\n  systemExtensions:\n    officialExtensions: [siderolabs/qemu-guest-agent]\n",
		"grub.yaml":   "customization: {bootloader: grub}\n",
		"broken.yaml": "customisation: {}\n",
	}[name]
	if !ok {
		return nil, errors.New("no such file")
	}

	return []byte(text), nil
}

func TestIDIsTheFactorys(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		image spec.Image
		id    string
	}{
		"nothing added":     {spec.Image{}, vanilla},
		"the guest agent":   {spec.Image{Extensions: []string{"siderolabs/qemu-guest-agent"}}, agent},
		"by its short name": {spec.Image{Extensions: []string{"qemu-guest-agent"}}, agent},
		"from a file":       {spec.Image{SchematicFile: spec.Ptr("agent.yaml")}, agent},
		"no boot loader":    {spec.Image{Bootloader: spec.Ptr("auto")}, vanilla},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := image.Resolve(c.image, version, files)
			require.NoError(t, err)
			assert.Equal(t, c.id, s.ID)
		})
	}
}

// TestCanonicalForm holds our document against the factory's own data model.
func TestCanonicalForm(t *testing.T) {
	t.Parallel()

	s, err := image.Resolve(spec.Image{
		Extensions: []string{"lldp", "iscsi-tools"},
		KernelArgs: []string{"net.ifnames=0", "-console"},
		Meta:       map[string]string{"0x0c": "twelve", "10": "ten"},
		Overlay: &spec.Overlay{
			Name: "rpi_generic", Image: "siderolabs/sbc-raspberrypi", Options: map[string]string{"b": "2", "a": "1"},
		},
	}, version, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"siderolabs/lldpd", "siderolabs/iscsi-tools"}, s.Extensions)

	theirs := schematic.Schematic{
		Overlay: schematic.Overlay{
			Name: "rpi_generic", Image: "siderolabs/sbc-raspberrypi", Options: map[string]any{"a": "1", "b": "2"},
		},
		Customization: schematic.Customization{
			ExtraKernelArgs:  []string{"net.ifnames=0", "-console"},
			Meta:             []schematic.MetaValue{{Key: 10, Value: "ten"}, {Key: 12, Value: "twelve"}},
			SystemExtensions: schematic.SystemExtensions{OfficialExtensions: []string{"siderolabs/lldpd", "siderolabs/iscsi-tools"}},
		},
	}
	text, err := theirs.Marshal()
	require.NoError(t, err)
	id, err := theirs.ID()
	require.NoError(t, err)
	assert.Equal(t, string(text), s.YAML)
	assert.Equal(t, id, s.ID)
}

func TestBootloaderStandsWhereTheFactoryHasIt(t *testing.T) {
	t.Parallel()

	s, err := image.Resolve(spec.Image{Extensions: []string{"zfs"}, Bootloader: spec.Ptr("grub")}, version, nil)
	require.NoError(t, err)
	assert.Equal(t, "customization:\n    systemExtensions:\n        officialExtensions:\n            - siderolabs/zfs\n"+
		"    bootloader: grub\n", s.YAML)

	fromFile, err := image.Resolve(spec.Image{SchematicFile: spec.Ptr("grub.yaml")}, version, files)
	require.NoError(t, err)
	assert.Equal(t, "customization:\n    bootloader: grub\n", fromFile.YAML)
}

func TestExtensionNames(t *testing.T) {
	t.Parallel()

	for _, c := range []struct{ name, version, full, problem string }{
		{"siderolabs/lldpd", "v1.12.4", "siderolabs/lldpd", ""},
		{"lldp", "v1.10.0", "siderolabs/lldpd", ""},
		{"util-linux-tools", "v1.12.4", "siderolabs/util-linux-tools", ""},
		{"nfs-utils", "v1.12.4", "siderolabs/nfs-utils", ""},
		{"gpio-pinctrl", "v1.12.2", "siderolabs/gpio-pinctrl", ""},
		{"gpio-pinctrl", "v1.12.1", "", `Talos v1.12.1 has no extension "gpio-pinctrl"; the list is at ` +
			"https://github.com/siderolabs/extensions"},
		{"qemu-guest-agnt", "v1.12.4", "", `Talos v1.12.4 has no extension "qemu-guest-agnt"; did you mean ` +
			"siderolabs/qemu-guest-agent?"},
		{"acme/tool", "v1.12.4", "", `"acme/tool" is no official extension: they are named siderolabs/<name>`},
		{"zfs", "v1.3.0", "", "the extensions of Talos v1.3.0 are not known"},
		{"zfs", "soon", "", "the extensions of Talos soon are not known"},
	} {
		full, err := image.Extension(c.name, c.version)
		assert.Equal(t, c.full, full)
		if c.problem == "" {
			assert.NoError(t, err)
		} else {
			assert.EqualError(t, err, c.problem)
		}
	}
}

// TestExtensionTables holds the tables to be sorted, without repetition, and never empty.
func TestExtensionTables(t *testing.T) {
	t.Parallel()

	for _, minor := range []string{"v1.10.0", "v1.11.0", "v1.12.0", "v1.13.0", "v1.14.0"} {
		names, ok := versions.Extensions(minor)
		require.True(t, ok, minor)
		assert.IsIncreasing(t, names, minor)
		assert.Contains(t, names, "qemu-guest-agent")
		assert.Greater(t, len(names), 40, minor)
	}
}
