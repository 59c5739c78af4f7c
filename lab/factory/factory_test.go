// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package factory_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/factory"
	"github.com/talos-proxmox/talos-proxmox/lab/image"
)

const (
	agentYAML = "customization:\n  systemExtensions:\n    officialExtensions:\n      - siderolabs/qemu-guest-agent\n"
	// bootLoaderID is the SHA-256 of the canonical form with the boot loader, which the factory writes
	// with four spaces.
	bootLoaderID = "9ed5fecdacb36b5c5427b87d409f1065cfb2df69b0f71c58b868d9d466d8dab3"
	agentID      = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"
)

func get(f http.Handler, method, url, body string) (int, string) {
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequest(method, url, strings.NewReader(body)))

	return w.Code, strings.TrimSpace(w.Body.String())
}

func TestSchematicsAreKnownByTheirRealIDs(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	f, err := factory.Open(dir)
	require.NoError(t, err)

	for name, c := range map[string]struct {
		body string
		code int
		want string
	}{
		"vanilla": {"{}", http.StatusCreated, factory.Vanilla},
		"agent":   {agentYAML, http.StatusCreated, agentID},
		"boot loader": {
			"customization:\n  bootloader: sd-boot\n", http.StatusCreated,
			bootLoaderID,
		},
		"no boot loader": {"customization:\n  bootloader: lilo\n", http.StatusBadRequest, "lilo does not belong to BootloaderKind values"},
		"unknown":        {"customisation: {}", http.StatusBadRequest, "yaml: unmarshal errors:\n  line 1: field customisation not found in type schematic.Schematic"},
	} {
		code, body := get(f, http.MethodPost, "https://factory.talos.dev/schematics", c.body)
		assert.Equal(t, c.code, code, name)
		if code != http.StatusCreated {
			assert.Equal(t, c.want, body, name)

			continue
		}
		var answer struct{ ID, Schematic string }
		require.NoError(t, json.Unmarshal([]byte(body), &answer), name)
		assert.Equal(t, c.want, answer.ID, name)
		again, err := f.Register([]byte(answer.Schematic))
		require.NoError(t, err, name)
		assert.Equal(t, answer.ID, again, "the normalized schematic is the same one")
	}

	again, err := factory.Open(dir)
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{factory.Vanilla, agentID, bootLoaderID}, again.Schematics(), "they survive")
}

func TestImages(t *testing.T) {
	t.Parallel()

	f, err := factory.Open(t.TempDir())
	require.NoError(t, err)
	_, err = f.Register([]byte(agentYAML))
	require.NoError(t, err)
	wrong, err := f.Register([]byte("customization:\n  systemExtensions:\n    officialExtensions: [siderolabs/guest-agent]\n"))
	require.NoError(t, err)

	younger, err := f.Register([]byte("customization:\n  systemExtensions:\n    officialExtensions: [siderolabs/intel-npu]\n"))
	require.NoError(t, err)

	base := "https://factory.talos.dev/image/" + agentID + "/v1.12.4/"
	for name, c := range map[string]struct {
		url  string
		code int
		want string // of failures
	}{
		"iso":            {base + "nocloud-amd64.iso", http.StatusOK, ""},
		"through mirror": {"https://proxy.example.com/factory.talos.dev/image/" + agentID + "/1.12.4/nocloud-amd64.raw.zst", http.StatusOK, ""},
		"unregistered":   {strings.ReplaceAll(base, "ce4c", "0000") + "nocloud-amd64.iso", http.StatusNotFound, `schematic ID "` + strings.ReplaceAll(agentID, "ce4c", "0000") + `" not found`},
		"no platform":    {base + "proxmox-amd64.iso", http.StatusBadRequest, "error parsing profile from path: invalid profile path: proxmox-amd64.iso"},
		"no version":     {strings.ReplaceAll(base, "v1.12.4", "v2.0.0") + "nocloud-amd64.iso", http.StatusNotFound, "version v2.0.0 is not available"},
		"no extension":   {strings.ReplaceAll(base, agentID, wrong) + "nocloud-amd64.iso", http.StatusBadRequest, `official extension "siderolabs/guest-agent" is not available for Talos version v1.12.4`},
		"of a release":   {"https://factory.talos.dev/image/" + younger + "/v1.13.0/nocloud-amd64.iso", http.StatusOK, ""},
		"not of an older": {
			strings.ReplaceAll(base, agentID, younger) + "nocloud-amd64.iso", http.StatusBadRequest,
			`official extension "siderolabs/intel-npu" is not available for Talos version v1.12.4`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			code, body := get(f, http.MethodGet, c.url, "")
			assert.Equal(t, c.code, code)
			if c.want != "" {
				assert.Equal(t, c.want, body)
			}
		})
	}

	iso, err := f.Image(agentID, "v1.12.4", "nocloud-amd64.iso")
	require.NoError(t, err)
	i, err := image.Decode(iso)
	require.NoError(t, err)
	assert.Equal(t, &image.Image{
		Talos: "v1.12.4", Schematic: agentID, Extensions: []string{"siderolabs/qemu-guest-agent"},
		KernelArgs: []string{"talos.halt_if_installed=1"}, Platform: "nocloud", Arch: "amd64", Kind: image.KindISO,
	}, i)

	raw, err := f.Image(agentID, "v1.12.4", "nocloud-arm64.raw")
	require.NoError(t, err)
	for _, algorithm := range []string{"gz", "zst"} {
		packed, err := f.Image(agentID, "v1.12.4", "nocloud-arm64.raw."+algorithm)
		require.NoError(t, err)
		_, err = image.Decode(packed)
		require.ErrorIs(t, err, image.ErrNotBootable)
		data, err := image.Decompress(algorithm, packed)
		require.NoError(t, err)
		assert.Equal(t, raw, data)
	}
}

func TestInstallersComeFromTheFactoryAndItsMirrors(t *testing.T) {
	t.Parallel()

	f, err := factory.Open(t.TempDir())
	require.NoError(t, err)
	_, err = f.Register([]byte(agentYAML))
	require.NoError(t, err)

	for ref, want := range map[string]image.Image{
		"factory.talos.dev/nocloud-installer/" + agentID + ":v1.12.4":         {Schematic: agentID, Platform: "nocloud"},
		"harbor.example.com/talos/nocloud-installer/" + agentID + ":v1.12.4":  {Schematic: agentID, Platform: "nocloud"},
		"factory.talos.dev/installer/" + agentID + ":v1.12.4":                 {Schematic: agentID, Platform: "metal"},
		"factory.talos.dev/metal-installer-secureboot/" + agentID + ":1.12.4": {Schematic: agentID, Platform: "metal", SecureBoot: true},
		"ghcr.io/siderolabs/installer:v1.12.4":                                {Schematic: factory.Vanilla, Platform: "metal"},
	} {
		i, err := f.PullImage(t.Context(), ref)
		require.NoError(t, err, ref)
		assert.Equal(t, want.Schematic, i.Schematic, ref)
		assert.Equal(t, want.Platform, i.Platform, ref)
		assert.Equal(t, want.SecureBoot, i.SecureBoot, ref)
		assert.Equal(t, "v1.12.4", i.Talos, ref)
	}

	missing := "factory.talos.dev/nocloud-installer/" + strings.Repeat("0", 64) + ":v1.12.4"
	_, err = f.PullImage(t.Context(), missing)
	require.EqualError(t, err, `failed to pull image "`+missing+`": failed to resolve reference "`+missing+`": `+missing+": not found")
}
