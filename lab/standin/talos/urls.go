// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/siderolabs/talos/pkg/machinery/platforms"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// imageURLs tells, offline, where the factory serves what.
func imageURLs(_ context.Context, op *bridge.Op) (bridge.Tree, error) {
	s, err := sessionOf(op)
	if err != nil {
		return nil, err
	}

	in := op.In
	if in.Has("platform") == in.Has("sbc") {
		return nil, errors.New("Invalid Attribute Combination: exactly one of these attributes must be configured: " +
			"[platform,sbc]") // the plugin's text
	}

	arch := in.Str("architecture")
	switch arch {
	case "":
		arch = "amd64"
	case "amd64", "arm64":
	default:
		return nil, fmt.Errorf(`Attribute architecture value must be one of: ["amd64" "arm64"], got: %q`,
			arch) // the plugin's text
	}

	version := "v" + strings.TrimPrefix(in.Str("talosVersion"), "v")
	if _, err := semver.ParseTolerant(strings.TrimPrefix(version, "v")); err != nil {
		return nil, errors.New("talos_version is not valid: The provided version is not a valid semantic version")
	}

	urls, err := assetURLs(s.factory.BaseURL(), in.Str("platform"), in.Str("schematicId"), version, arch)
	if err != nil {
		return nil, err
	}

	return merged(in, bridge.Tree{"id": "", "architecture": arch, "urls": urls}), nil
}

func assetURLs(base, platform, schematic, version, arch string) (bridge.Tree, error) {
	uri, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("failed to parse image factory base URL: %w", err)
	}

	installer := func(kind string) string { return uri.Host + "/" + kind + "/" + schematic + ":" + version }
	image := func(path string) string { return strings.Join([]string{base, "image", schematic, version, path}, "/") }

	out := bridge.Tree{}
	for _, name := range []string{
		"installer", "installerSecureboot", "iso", "isoSecureboot", "diskImage", "diskImageSecureboot",
		"pxe", "kernel", "kernelCommandLine", "initramfs", "uki",
	} {
		out[name] = ""
	}

	if platform == "" { // a single-board computer
		out["installer"], out["diskImage"] = installer("metal-installer"), image("metal-arm64.raw.xz")
		return out, nil
	}

	p, err := platformNamed(platform)
	if err != nil {
		return nil, err
	}

	out["installer"] = installer(platform + "-installer")
	metal := platform == "metal"
	secure := p.SecureBootSupported || metal
	methods := p.BootMethods
	if metal {
		methods = []platforms.BootMethod{
			platforms.BootMethodDiskImage, platforms.BootMethodPXE, platforms.BootMethodISO,
		}
		out["kernel"], out["initramfs"] = image(p.KernelPath(arch)), image(p.InitramfsPath(arch))
		out["kernelCommandLine"], out["uki"] = image(p.CmdlinePath(arch)), image(p.SecureBootUKIPath(arch))
	}

	set := func(name, path, securePath string) {
		out[name] = image(path)
		if secure {
			out[name+"Secureboot"] = image(securePath)
		}
	}
	if secure {
		out["installerSecureboot"] = installer(platform + "-installer-secureboot")
	}
	if slices.Contains(methods, platforms.BootMethodDiskImage) {
		set("diskImage", p.DiskImageDefaultPath(arch), p.SecureBootDiskImageDefaultPath(arch))
	}
	if slices.Contains(methods, platforms.BootMethodISO) {
		set("iso", p.ISOPath(arch), p.SecureBootISOPath(arch))
	}
	if slices.Contains(methods, platforms.BootMethodPXE) {
		out["pxe"] = fmt.Sprintf("%s://pxe.%s/pxe/%s/%s/%s", uri.Scheme, uri.Host, schematic, version,
			p.PXEScriptPath(arch))
	}

	return out, nil
}

func platformNamed(name string) (platforms.Platform, error) {
	if name == "metal" {
		return platforms.MetalPlatform(), nil
	}

	for _, p := range platforms.CloudPlatforms() {
		if p.Name == name {
			return p, nil
		}
	}

	return platforms.Platform{}, fmt.Errorf("failed to find platform: %s", name)
}
