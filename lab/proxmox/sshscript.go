// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmox

import (
	"regexp"
	"strconv"
)

// importJob describes a disk image that is to become a VM's disk.
type importJob struct {
	file, format, datastore, options, drive string
	vm                                      int
}

// importScript is what the Terraform provider bpg/proxmox 0.69.1 runs on a host for a disk with file_id
// (proxmoxtf/resource/vm/disk/disk.go, createCustomDisk), its lines joined with semicolons.
var importScript = regexp.MustCompile(`^set -e; try_sudo\(\)\{ .*? \}; ` +
	`file_id="([^"]*)"; file_format="([^"]*)"; datastore_id_target="([^"]*)"; vm_id="(\d+)"; ` +
	`disk_options="([^"]*)"; disk_interface="(\w+)"; ` + regexp.QuoteMeta(
	`source_image=$(try_sudo "pvesm path $file_id"); imported_disk="$(try_sudo "qm importdisk $vm_id $source_image `+
		`$datastore_id_target -format $file_format" | grep "unused0" | cut -d ":" -f 3 | cut -d "'" -f 1)"; `+
		`disk_id="${datastore_id_target}:$imported_disk,${disk_options}"; try_sudo "qm set $vm_id -${disk_interface} $disk_id"`) + `$`)

// readImport reads the script, and no other.
func readImport(script string) (importJob, bool) {
	m := importScript.FindStringSubmatch(script)
	if m == nil {
		return importJob{}, false
	}
	vm, err := strconv.Atoi(m[4])

	return importJob{file: m[1], format: m[2], datastore: m[3], vm: vm, options: m[5], drive: m[6]}, err == nil
}
