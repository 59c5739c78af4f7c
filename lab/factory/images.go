// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package factory

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/image"
)

// asset is the name of a boot asset, "nocloud-amd64-secureboot.raw.gz".
var asset = regexp.MustCompile(`^([a-z0-9]+)-(amd64|arm64)(-secureboot)?\.(iso|qcow2|raw|raw\.gz|raw\.xz|raw\.zst)$`)

func platforms() []string {
	return []string{
		"metal", "nocloud", "aws", "azure", "gcp", "hcloud", "openstack", "vmware", "digitalocean", "equinixMetal",
		"exoscale", "oracle", "scaleway", "upcloud", "vultr", "cloudstack", "opennebula", "akamai",
	}
}

// Image makes the bytes of a boot asset, the same at each call.
func (f *Factory) Image(id, talos, name string) ([]byte, error) {
	s, err := f.get(id)
	if err != nil {
		return nil, err
	}
	v, err := version(talos)
	if err != nil {
		return nil, err
	}

	m := asset.FindStringSubmatch(name)
	if m == nil || !slices.Contains(platforms(), m[1]) {
		return nil, &problem{http.StatusBadRequest, fmt.Sprintf("error parsing profile from path: invalid profile path: %s", name)}
	}
	if err := check(s, v); err != nil {
		return nil, err
	}

	i := describe(s, id, v, m[1], m[2], m[3] != "")
	i.Kind = image.KindDisk
	if m[4] == "iso" {
		i.Kind = image.KindISO
		// What the real ISO's kernel command line holds; a node that finds itself installed stops.
		i.KernelArgs = append(i.KernelArgs, "talos.halt_if_installed=1")
	}

	data, err := image.Encode(i)
	if err != nil {
		return nil, fmt.Errorf("building %s: %w", name, err)
	}
	switch m[4] {
	case "raw.gz", "raw.zst":
		data, err = image.Compress(strings.TrimPrefix(m[4], "raw."), data)
		if err != nil {
			return nil, fmt.Errorf("building %s: %w", name, err)
		}
	case "raw.xz": // no host of the lab unpacks it, as no Proxmox VE does
		data = append([]byte("\xfd7zXZ\x00"), data...)
	}

	return data, nil
}

func describe(s Schematic, id, v, platform, arch string, secureBoot bool) image.Image {
	return image.Image{
		Talos: v, Schematic: id, Platform: platform, Arch: arch, SecureBoot: secureBoot,
		Extensions: slices.Clone(s.Customization.SystemExtensions.OfficialExtensions),
		KernelArgs: slices.Clone(s.Customization.ExtraKernelArgs),
	}
}

var (
	// factoryRef is an installer of a schematic, whatever registry or mirror it comes from.
	factoryRef = regexp.MustCompile(`^(?:.+/)?(?:([a-z0-9]+)-)?installer(-secureboot)?/([0-9a-f]{64}):([\w.+-]+)(?:@sha256:[0-9a-f]{64})?$`)
	// plainRef is the installer without any extension.
	plainRef = regexp.MustCompile(`^(?:.+/)?installer:([\w.+-]+)(?:@sha256:[0-9a-f]{64})?$`)
)

// PullImage resolves an installer image as a node pulls it: from the factory, from a mirror of it, or
// the plain one of ghcr.io, which has no extensions. Errors are those that containerd reports.
func (f *Factory) PullImage(_ context.Context, ref string) (*image.Image, error) {
	notFound := fmt.Errorf("failed to pull image %q: failed to resolve reference %q: %s: not found", ref, ref, ref)

	id, platform, tag, secure := Vanilla, "metal", "", false
	if m := factoryRef.FindStringSubmatch(ref); m != nil {
		id, tag, secure = m[3], m[4], m[2] != ""
		if m[1] != "" {
			platform = m[1]
		}
	} else if m := plainRef.FindStringSubmatch(ref); m != nil {
		tag = m[1]
	} else {
		return nil, notFound
	}

	s, err := f.get(id)
	if err != nil || !slices.Contains(platforms(), platform) {
		return nil, notFound
	}
	v, err := version(tag)
	if err != nil || check(s, v) != nil {
		return nil, notFound
	}

	i := describe(s, id, v, platform, "amd64", secure)
	i.Kind = image.KindInstaller

	return &i, nil
}
