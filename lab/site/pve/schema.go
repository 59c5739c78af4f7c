// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package pve

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	HostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)
	DriveKey = regexp.MustCompile(`^(ide[0-3]|sata[0-5]|scsi([0-9]|[12][0-9]|30)|virtio([0-9]|1[0-5])|efidisk0|tpmstate0|unused\d+)$`)
	DiskKey  = regexp.MustCompile(`^(ide[0-3]|sata[0-5]|scsi([0-9]|[12][0-9]|30)|virtio([0-9]|1[0-5]))$`)
	NetKey   = regexp.MustCompile(`^net([0-9]|[12][0-9]|3[01])$`)
)

func SplitList(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ';' || r == ',' || r == ' ' })
}

// NIC holds a parsed net setting.
type NIC struct {
	Model, MAC, Bridge string
	Tag, MTU           int
	Rest               Properties
}

func ParseNet(v string) NIC {
	p := ParseProperties("model", v)
	n := NIC{Model: p.Get("model"), MAC: p.Get("macaddr"), Bridge: p.Get("bridge"), Rest: p}
	for _, model := range []string{"virtio", "e1000", "e1000e", "rtl8139", "vmxnet3", "e1000-82540em", "ne2k_pci", "i82551"} {
		if v, ok := p.Value[model]; ok { // "virtio=AA:BB:…" says the model and the address
			n.Model, n.MAC = model, v
		}
	}
	n.Tag, _ = strconv.Atoi(p.Get("tag")) // absent is 0
	n.MTU, _ = strconv.Atoi(p.Get("mtu")) // absent is 0

	return n
}

// String prints the setting as it is stored: model and address first.
func (n NIC) String() string {
	p := n.Rest
	out := Properties{first: n.Model, Value: map[string]string{}}
	for _, k := range p.keys {
		if k != "model" && k != "macaddr" && k != n.Model {
			out.Set(k, p.Get(k))
		}
	}
	s := n.Model + "=" + n.MAC
	if rest := out.String(); rest != "" {
		s += "," + rest
	}

	return s
}
