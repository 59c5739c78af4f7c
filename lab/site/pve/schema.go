// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package pve

import (
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	HostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)
	dnsName  = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$`)
	DriveKey = regexp.MustCompile(`^(ide[0-3]|sata[0-5]|scsi([0-9]|[12][0-9]|30)|virtio([0-9]|1[0-5])|efidisk0|tpmstate0|unused\d+)$`)
	DiskKey  = regexp.MustCompile(`^(ide[0-3]|sata[0-5]|scsi([0-9]|[12][0-9]|30)|virtio([0-9]|1[0-5]))$`)
	NetKey   = regexp.MustCompile(`^net([0-9]|[12][0-9]|3[01])$`)
	OtherKey = regexp.MustCompile(`^(ipconfig([0-9]|[12][0-9]|3[01])|numa[0-7]|hostpci([0-9]|1[0-5])|usb([0-9]|1[0-4])|` +
		`serial[0-3]|parallel[0-2]|audio0|rng0)$`)
	tagFormat = regexp.MustCompile(`^[a-z0-9_][a-z0-9_\-+.]*$`)
	macFormat = regexp.MustCompile(`(?i)^[a-f0-9][02468ace](:[a-f0-9]{2}){5}$`)
)

// PlainKeys returns the options with no number in their names, and what kind of value they take: "" any text, "bool",
// "int:MIN", or the allowed values.
func PlainKeys() map[string]string {
	return map[string]string{
		"acpi": "bool", "affinity": "", "agent": "", "arch": "x86_64 aarch64", "args": "", "autostart": "bool",
		"balloon": "int:0", "bios": "seabios ovmf", "boot": "", "bootdisk": "", "cdrom": "", "cicustom": "",
		"cipassword": "", "citype": "configdrive2 nocloud opennebula", "ciupgrade": "bool", "ciuser": "",
		"cores": "int:1", "cpu": "", "cpulimit": "", "cpuunits": "int:1", "description": "", "freeze": "bool",
		"hookscript": "", "hotplug": "", "hugepages": "any 2 1024", "ivshmem": "", "keephugepages": "bool",
		"keyboard": "", "kvm": "bool", "localtime": "bool", "machine": "", "memory": "int:16",
		"migrate_downtime": "", "migrate_speed": "int:0", "name": "", "nameserver": "", "numa": "bool",
		"onboot": "bool", "ostype": "other wxp w2k w2k3 w2k8 wvista win7 win8 win10 win11 l24 l26 solaris",
		"protection": "bool", "reboot": "bool",
		"scsihw":       "lsi lsi53c810 virtio-scsi-pci virtio-scsi-single megasas pvscsi",
		"searchdomain": "", "shares": "int:0", "smbios1": "", "sockets": "int:1", "spice_enhancements": "",
		"sshkeys": "", "startdate": "", "startup": "", "tablet": "bool", "tags": "", "tdf": "bool",
		"template": "bool", "vcpus": "int:1", "vga": "", "vmgenid": "", "vmstatestorage": "", "watchdog": "",
		"digest": "", "lock": "backup clone create migrate rollback snapshot snapshot-delete suspended suspending",
	}
}

// CheckConfig refuses keys and values that the API's schema does not allow.
func CheckConfig(params map[string]string) error {
	plain := PlainKeys()
	problems := map[string]string{}
	for k, v := range params {
		kind, known := plain[k]
		switch {
		case known:
			if msg := checkPlain(k, kind, v); msg != "" {
				problems[k] = msg
			}
		case NetKey.MatchString(k):
			if msg := checkNet(v); msg != "" {
				problems[k] = msg
			}
		case strings.HasPrefix(k, "ipconfig") && OtherKey.MatchString(k):
			if msg := checkIPConfig(v); msg != "" {
				problems[k] = msg
			}
		case DriveKey.MatchString(k):
			if p := ParseProperties("file", v); p.Get("file") == "" {
				problems[k] = "invalid format - format error\n" + k + ".file: property is missing and it is not optional"
			}
		case OtherKey.MatchString(k):
		default:
			problems[k] = "property is not defined in schema and the schema does not allow additional properties"
		}
	}
	if len(problems) > 0 {
		return &Error{Status: 400, Message: "Parameter verification failed.", Fields: problems}
	}

	return nil
}

func checkPlain(key, kind, v string) string {
	switch {
	case kind == "bool":
		if !slices.Contains([]string{"0", "1", "on", "off", "yes", "no", "true", "false"}, v) {
			return "type check ('boolean') failed - got '" + v + "'"
		}
	case strings.HasPrefix(kind, "int:"):
		least, _ := strconv.Atoi(strings.TrimPrefix(kind, "int:")) // our own table
		n, err := strconv.Atoi(v)
		if err != nil {
			return "type check ('integer') failed - got '" + v + "'"
		}
		if n < least {
			return "value must have a minimum value of " + strconv.Itoa(least)
		}
	case kind != "":
		if allowed := strings.Fields(kind); !slices.Contains(allowed, v) {
			return "value '" + v + "' does not have a value in the enumeration '" + strings.Join(allowed, ", ") + "'"
		}
	case key == "name":
		if !dnsName.MatchString(v) {
			return "invalid format - value does not look like a valid DNS name"
		}
	case key == "tags":
		for _, tag := range SplitList(v) {
			if !tagFormat.MatchString(strings.ToLower(tag)) {
				return "invalid format - invalid characters in tag"
			}
		}
	}

	return ""
}

func checkNet(v string) string {
	n := ParseNet(v)
	switch {
	case n.Model == "":
		return "invalid format - format error\nnet.model: property is missing and it is not optional"
	case n.MAC != "" && !macFormat.MatchString(n.MAC):
		return "invalid format - format error\nnet.macaddr: value does not look like a valid unicast MAC address"
	case n.Tag < 0 || n.Tag > 4094:
		return "invalid format - format error\nnet.tag: value must have a maximum value of 4094"
	case n.MTU < 0 || n.MTU > 65520:
		return "invalid format - format error\nnet.mtu: value must have a maximum value of 65520"
	}

	return ""
}

func checkIPConfig(v string) string {
	p := ParseProperties("", v)
	for _, k := range p.keys {
		value := p.Get(k)
		switch k {
		case "ip", "ip6":
			if value == "dhcp" || (k == "ip6" && value == "auto") {
				continue
			}
			prefix, err := netip.ParsePrefix(value)
			if err != nil || prefix.Addr().Is4() != (k == "ip") {
				return "invalid format - format error\nipconfig." + k + ": value does not look like a valid " +
					map[string]string{"ip": "IPv4", "ip6": "IPv6"}[k] + " network configuration"
			}
		case "gw", "gw6":
			addr, err := netip.ParseAddr(value)
			if err != nil || addr.Is4() != (k == "gw") {
				return "invalid format - format error\nipconfig." + k + ": value does not look like a valid IP address"
			}
			if p.Get(map[string]string{"gw": "ip", "gw6": "ip6"}[k]) == "" {
				return "invalid format - format error\nipconfig." + k + ": missing property"
			}
		default:
			return "invalid format - format error\nipconfig." + k + ": property is not defined in schema"
		}
	}

	return ""
}

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
	s := n.Model + "=" + strings.ToUpper(n.MAC)
	if rest := out.String(); rest != "" {
		s += "," + rest
	}

	return s
}
