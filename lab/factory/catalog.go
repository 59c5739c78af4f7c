// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package factory

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
)

// extensions are the names of the official system extensions.
func extensions() []string {
	return []string{
		"siderolabs/amd-ucode", "siderolabs/amdgpu", "siderolabs/binfmt-misc", "siderolabs/bnx2-bnx2x", "siderolabs/btrfs",
		"siderolabs/chelsio-drivers", "siderolabs/chelsio-firmware", "siderolabs/cloudflared", "siderolabs/crun",
		"siderolabs/drbd", "siderolabs/dvb-cx23885", "siderolabs/dvb-m88ds3103", "siderolabs/ecr-credential-provider",
		"siderolabs/fuse3", "siderolabs/gasket-driver", "siderolabs/glibc", "siderolabs/gvisor", "siderolabs/gvisor-debug",
		"siderolabs/hailort", "siderolabs/hello-world-service", "siderolabs/i915", "siderolabs/intel-ice-firmware",
		"siderolabs/intel-ucode", "siderolabs/iscsi-tools", "siderolabs/kata-containers", "siderolabs/lldpd",
		"siderolabs/mdadm", "siderolabs/mei", "siderolabs/metal-agent", "siderolabs/nebula", "siderolabs/netbird",
		"siderolabs/newt", "siderolabs/nfs-utils", "siderolabs/nfsd", "siderolabs/nfsrahead", "siderolabs/nonfree-kmod-nvidia-lts",
		"siderolabs/nonfree-kmod-nvidia-production", "siderolabs/nut-client", "siderolabs/nvidia-container-toolkit-lts",
		"siderolabs/nvidia-container-toolkit-production", "siderolabs/nvidia-fabricmanager-lts",
		"siderolabs/nvidia-fabricmanager-production", "siderolabs/nvidia-open-gpu-kernel-modules-lts",
		"siderolabs/nvidia-open-gpu-kernel-modules-production", "siderolabs/nvme-cli", "siderolabs/panfrost",
		"siderolabs/qemu-guest-agent", "siderolabs/qlogic-firmware", "siderolabs/realtek-firmware", "siderolabs/revpi-firmware",
		"siderolabs/spin", "siderolabs/stargz-snapshotter", "siderolabs/tailscale", "siderolabs/tenstorrent",
		"siderolabs/thunderbolt", "siderolabs/uinput", "siderolabs/usb-audio-drivers", "siderolabs/usb-modem-drivers",
		"siderolabs/util-linux-tools", "siderolabs/v4l-uvc-drivers", "siderolabs/vc4", "siderolabs/vmtoolsd-guest-agent",
		"siderolabs/wasmedge", "siderolabs/xdma-driver", "siderolabs/xen-guest-agent", "siderolabs/youki",
		"siderolabs/zerotier", "siderolabs/zfs",
	}
}

// overlays are the official overlays' names and images.
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
	for _, name := range extensions() {
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
		if !extensionName.MatchString(name) || !slices.Contains(extensions(), name) {
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
