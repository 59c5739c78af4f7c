// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmox

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Machine holds what a VM is like, as far as it says whether it is the one that is meant.
type Machine struct {
	Name, Host string
	// MACs of the network cards, in order, upper case.
	MACs []string
	// Disks are the slots of its disks: "scsi0".
	Disks []string
	// CDs are the files in its CD drives, by slot; that of cloud-init is none of them.
	CDs map[string]string
}

// diskSlot and cardSlot are settings that are a disk or a CD drive, and a network card.
var (
	diskSlot = regexp.MustCompile(`^(scsi|virtio|sata|ide)\d+$`)
	cardSlot = regexp.MustCompile(`^net\d+$`)
)

// Inspect looks at the VM of an id, wherever it is; nil when there is none.
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

// bySlot sorts net2 before net10.
func bySlot(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}
