// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmox

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Machine describes a VM as far as is needed to tell whether it is the expected one.
type Machine struct {
	Name, Host string
	// MACs of the network cards, in order, upper case.
	MACs []string
	// Disks are the slots of its disks: "scsi0".
	Disks []string
	// CDs are the files in its CD drives, by slot; that of cloud-init is none of them.
	CDs map[string]string
	// EFIDisk describes where its UEFI variables are kept ("4m raw", "2m qcow2 with keys"), and TPM is the version of
	// its TPM; empty without.
	EFIDisk, TPM string
}

// diskSlot and cardSlot are settings that are a disk or a CD drive, and a network card.
var (
	diskSlot = regexp.MustCompile(`^(scsi|virtio|sata|ide)\d+$`)
	cardSlot = regexp.MustCompile(`^net\d+$`)
)

// Inspect returns the VM with an id, on whichever host it is; nil when there is none.
func (c *Client) Inspect(ctx context.Context, id int) (*Machine, error) {
	var all []VM
	if err := c.call(ctx, http.MethodGet, "/cluster/resources?type=vm", nil, &all); err != nil {
		return nil, err
	}
	at := slices.IndexFunc(all, func(v VM) bool { return v.ID == id })
	if at < 0 {
		return nil, nil
	}
	var config map[string]any
	if err := c.call(ctx, http.MethodGet, all[at].path()+"/config", nil, &config); err != nil {
		return nil, err
	}
	m := &Machine{Name: all[at].Name, Host: all[at].Host, CDs: map[string]string{}}
	for _, key := range slices.SortedFunc(maps.Keys(config), bySlot) {
		text, _ := config[key].(string)
		file, options, _ := strings.Cut(text, ",")
		switch {
		case key == "efidisk0":
			m.EFIDisk = efiDiskOf(file, optionsOf(options))
		case key == "tpmstate0":
			m.TPM = cmp.Or(optionsOf(options)["version"], "v1.2")
		case cardSlot.MatchString(key):
			m.MACs = append(m.MACs, strings.ToUpper(macForm.FindString(text)))
		case !diskSlot.MatchString(key):
		case !slices.Contains(strings.Split(options, ","), "media=cdrom"):
			m.Disks = append(m.Disks, key)
		case !strings.Contains(file, "cloudinit"):
			m.CDs[key] = file
		}
	}

	return m, nil
}

// optionsOf reads "efitype=4m,size=4M".
func optionsOf(text string) map[string]string {
	found := map[string]string{}
	for option := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(option, "=")
		found[key] = value
	}

	return found
}

// efiDiskOf describes a disk of UEFI variables. Its format is that of the file; a block device has none and is raw.
func efiDiskOf(file string, options map[string]string) string {
	_, volume, _ := strings.Cut(file, ":")
	format := cmp.Or(strings.TrimPrefix(path.Ext(volume), "."), "raw")

	return EFIDisk(cmp.Or(options["efitype"], "2m"), cmp.Or(options["format"], format), options["pre-enrolled-keys"] == "1")
}

// EFIDisk describes a disk of UEFI variables as [Machine] does.
func EFIDisk(kind, format string, keys bool) string {
	text := kind + " " + format
	if keys {
		text += " with keys"
	}

	return text
}

// bySlot sorts net2 before net10.
func bySlot(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}
