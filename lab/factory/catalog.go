// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package factory

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"

	"github.com/blang/semver/v4"
)

// extensions returns the names of the official system extensions of a Talos version, those of 1.10 and before as
// 1.10 has them.
func extensions(v string) []string {
	all := []string{
		"amazon-ena", "amd-ucode", "amdgpu", "binfmt-misc", "bnx2-bnx2x", "btrfs", "chelsio-drivers", "chelsio-firmware",
		"cloudflared", "crun", "ctr", "drbd", "dvb-cx23885", "ecr-credential-provider", "fuse3", "gasket-driver", "glibc",
		"gvisor", "gvisor-debug", "hello-world-service", "i915", "intel-ice-firmware", "intel-ucode", "iscsi-tools",
		"kata-containers", "lldpd", "mdadm", "mei", "metal-agent", "nebula", "nfsd", "nonfree-kmod-nvidia-lts",
		"nonfree-kmod-nvidia-production", "nut-client", "nvidia-container-toolkit-lts",
		"nvidia-container-toolkit-production", "nvidia-fabricmanager-lts", "nvidia-fabricmanager-production",
		"nvidia-open-gpu-kernel-modules-lts", "nvidia-open-gpu-kernel-modules-production", "nvme-cli", "panfrost",
		"qemu-guest-agent", "qlogic-firmware", "realtek-firmware", "revpi-firmware", "spin", "stargz-snapshotter",
		"tailscale", "thunderbolt", "uinput", "usb-modem-drivers", "util-linux-tools", "v4l-uvc-drivers", "vc4",
		"vmtoolsd-guest-agent", "wasmedge", "xdma-driver", "xen-guest-agent", "youki", "zerotier", "zfs",
	}
	for _, later := range newer() {
		if before, err := semver.ParseTolerant(v); err == nil && before.Minor < later.minor {
			break
		}
		all = append(all, later.names...)
	}
	slices.Sort(all)
	for i := range all {
		all[i] = "siderolabs/" + all[i]
	}

	return all
}

// release holds what a minor release brought.
type release struct {
	minor uint64
	names []string
}

// newer returns the extensions that releases after 1.10 brought, oldest first.
func newer() []release {
	return []release{
		{11, []string{
			"dvb-m88ds3103", "hailort", "newt", "nfsrahead", "tenstorrent",
		}},
		{12, []string{
			"bird2", "gpio-pinctrl", "mellanox-mstflint", "multipath-tools", "netbird", "nfs-utils", "nvidia-gdrdrv-device",
			"soci-snapshotter", "trident-iscsi-tools", "usb-audio-drivers", "xe",
		}},
		{13, []string{
			"intel-npu", "joydev", "px-fuse", "rockchip-rknn", "uhid",
		}},
		{14, []string{
			"harbor-credential-provider", "hyperv-guest-agent", "kata-containers-snp",
		}},
	}
}

// overlays returns the official overlays' names and images.
func overlays() map[string]string {
	return map[string]string{
		"rpi_5": "siderolabs/sbc-raspberrypi", "rpi_generic": "siderolabs/sbc-raspberrypi",
		"rock4cplus": "siderolabs/sbc-rockchip", "rock5b": "siderolabs/sbc-rockchip", "rockpi4": "siderolabs/sbc-rockchip",
		"turingrk1": "siderolabs/sbc-rockchip", "nanopi-r4s": "siderolabs/sbc-rockchip", "orangepi-5": "siderolabs/sbc-rockchip",
		"jetson_nano": "siderolabs/sbc-jetson", "bananapi_m64": "siderolabs/sbc-allwinner", "pine64": "siderolabs/sbc-allwinner",
	}
}

type extensionInfo struct {
	Name        string `json:"name"`
	Ref         string `json:"ref"`
	Digest      string `json:"digest"`
	Author      string `json:"author"`
	Description string `json:"description"`
}

type overlayInfo struct {
	Name   string `json:"name"`
	Image  string `json:"image"`
	Ref    string `json:"ref"`
	Digest string `json:"digest"`
}

func extensionInfos(v string) []extensionInfo {
	var all []extensionInfo
	for _, name := range extensions(v) {
		ref := "ghcr.io/" + name + ":" + v
		all = append(all, extensionInfo{
			Name: name, Ref: ref, Digest: digest(ref), Author: "Sidero Labs",
			Description: "The lab's entry for the system extension " + name + ".",
		})
	}

	return all
}

func overlayInfos(v string) []overlayInfo {
	all := []overlayInfo{}
	for name, image := range overlays() {
		ref := "ghcr.io/" + image + ":" + v
		all = append(all, overlayInfo{Name: name, Image: image, Ref: ref, Digest: digest(ref)})
	}
	slices.SortFunc(all, func(a, b overlayInfo) int { return slices.Compare([]byte(a.Name), []byte(b.Name)) })

	return all
}

func digest(s string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(s))) }

// check refuses what no image of that version can hold.
func check(s Schematic, v string) error {
	for _, name := range s.Customization.SystemExtensions.OfficialExtensions {
		if !extensionName.MatchString(name) || !slices.Contains(extensions(v), name) {
			return &problem{
				http.StatusBadRequest,
				fmt.Sprintf("official extension %q is not available for Talos version %s", name, v),
			}
		}
	}
	if o := s.Overlay; o.Name != "" && overlays()[o.Name] != o.Image {
		return &problem{
			http.StatusBadRequest,
			fmt.Sprintf("official overlay %q is not available for Talos version %s", o.Name, v),
		}
	}

	return nil
}
