// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmox

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/site"
	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
)

// What the settings of a VM need, as PVE/API2/Qemu.pm has it. Drives and devices of the host are looked at by their
// values.
var (
	driveKey = regexp.MustCompile(`^(ide|sata|scsi|virtio|efidisk|tpmstate)\d+$`)
	netKey   = regexp.MustCompile(`^net\d+$`)
	ipKey    = regexp.MustCompile(`^ipconfig\d+$`)
	numaKey  = regexp.MustCompile(`^numa\d+$`)
	hostKey  = regexp.MustCompile(`^(hostpci|usb|serial|rng|audio)\d+$`)
)

// settingPrivilege returns the privilege of a plain setting, "" for one that is looked at elsewhere.
func settingPrivilege(key string) []string {
	switch {
	case slices.Contains([]string{"cores", "cpu", "cpulimit", "cpuunits", "numa", "sockets", "vcpus", "affinity"}, key),
		numaKey.MatchString(key):
		return []string{"VM.Config.CPU"}
	case slices.Contains([]string{"memory", "balloon", "shares", "hugepages", "keephugepages"}, key):
		return []string{"VM.Config.Memory"}
	case slices.Contains([]string{"acpi", "hotplug", "kvm", "machine", "scsihw", "smbios1", "tablet", "vga", "watchdog"}, key),
		hostKey.MatchString(key):
		return []string{"VM.Config.HWType"}
	case slices.Contains([]string{"boot", "bootdisk", "vmstatestorage"}, key):
		return []string{"VM.Config.Disk"}
	case netKey.MatchString(key):
		return []string{"VM.Config.Network"}
	case ipKey.MatchString(key), strings.HasPrefix(key, "ci"), slices.Contains([]string{"nameserver", "searchdomain", "sshkeys"}, key):
		return []string{"VM.Config.Cloudinit", "VM.Config.Network"}
	}

	return []string{"VM.Config.Options"}
}

// settingNeeds returns what the settings of a request need at a VM's path.
func settingNeeds(path string, params map[string]string, create bool) []need {
	var needs []need
	for _, key := range slices.Sorted(maps.Keys(params)) {
		value := params[key]
		switch {
		case slices.Contains([]string{
			"vmid", "node", "delete", "revert", "digest", "pool", "force", "skiplock", "start", "unique", "background_delay",
		}, key):
		case driveKey.MatchString(key):
			needs = append(needs, driveNeeds(path, value, create)...)
		default:
			needs = append(needs, at(path, settingPrivilege(key)...))
			needs = append(needs, hostNeeds(key, value)...)
		}
	}
	for _, key := range split(params["delete"]) {
		if driveKey.MatchString(key) {
			needs = append(needs, at(path, "VM.Config.Disk"))
		} else {
			needs = append(needs, at(path, settingPrivilege(key)...))
		}
	}

	return needs
}

// driveNeeds: a new disk needs room on its storage, a medium needs to be readable. What may be attached to a VM that
// is being made is a matter of the storages alone.
func driveNeeds(path, value string, create bool) []need {
	var needs []need
	file := option(value, "file")
	if file == "" {
		file, _, _ = strings.Cut(value, ",")
	}
	storage, volume, ok := strings.Cut(file, ":")
	cd := option(value, "media") == "cdrom"
	switch {
	case !ok: // none, or the host's own drive
	case cd && volume != "cloudinit":
		needs = append(needs, at("/storage/"+storage, "Datastore.AllocateSpace", "Datastore.Audit"))
	case volume == "cloudinit" || strings.Trim(volume, "0123456789.") == "":
		needs = append(needs, at("/storage/"+storage, "Datastore.AllocateSpace"))
	}
	switch {
	case create:
	case volume == "cloudinit":
		needs = append(needs, at(path, "VM.Config.Cloudinit"), at(path, "VM.Config.CDROM"))
	case cd:
		needs = append(needs, at(path, "VM.Config.CDROM"))
	default:
		needs = append(needs, at(path, "VM.Config.Disk"))
	}

	return needs
}

// hostNeeds returns what a setting needs beside the VM: the network, a mapping, the order of starting.
func hostNeeds(key, value string) []need {
	switch {
	case netKey.MatchString(key):
		zone := "/sdn/zones/localnetwork/" + option(value, "bridge")
		if tag := option(value, "tag"); tag != "" {
			zone += "/" + tag
		}

		return []need{at(zone, "SDN.Use")}
	case strings.HasPrefix(key, "hostpci") && option(value, "mapping") != "":
		return []need{at("/mapping/pci/"+option(value, "mapping"), "Mapping.Use")}
	case strings.HasPrefix(key, "usb") && option(value, "mapping") != "":
		return []need{at("/mapping/usb/"+option(value, "mapping"), "Mapping.Use")}
	case key == "startup":
		return []need{at("/", "Sys.Modify")}
	}

	return nil
}

// option returns a field of a property string: "virtio,bridge=vmbr0".
func option(value, name string) string {
	for _, part := range strings.Split(value, ",") {
		if v, ok := strings.CutPrefix(part, name+"="); ok {
			return v
		}
	}

	return ""
}

// mayChange refuses changes of a VM that the caller may not make: some setting has to be the caller's to change, then
// each that is given.
func mayChange(r *request, id int) error {
	path := "/vms/" + strconv.Itoa(id)
	if err := r.check(at(path, "VM.Config.Disk", "VM.Config.CDROM", "VM.Config.CPU", "VM.Config.Memory", "VM.Config.Network",
		"VM.Config.HWType", "VM.Config.Options", "VM.Config.Cloudinit")); err != nil {
		return err
	}
	if r.flag("skiplock") && r.user != rootUser {
		return pve.Invalid("skiplock", "Only root may use this option.")
	}
	if err := site.CheckRoot(r.params(), r.user); err != nil {
		return err
	}
	if err := r.check(settingNeeds(path, r.params(), false)...); err != nil {
		return err
	}
	v, err := r.cluster.VM(r.PathValue("node"), id)
	if err != nil {
		return err
	}
	for _, key := range split(r.param("delete")) { // a network is somebody's until the device has gone
		if err := r.check(hostNeeds(key, v.Wanted[key])...); netKey.MatchString(key) && err != nil {
			return err
		}
	}

	return nil
}
