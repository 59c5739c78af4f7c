// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package schema

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
)

// checkFormat checks a text by a format.
func (d *Description) checkFormat(f format, s, path string) error {
	if f.fields != nil {
		_, err := d.parse(f.fields, s, path)

		return err
	}
	if named, ok := d.formats[f.name]; ok {
		values, err := d.parse(named.Properties, s, path)
		if err == nil && f.name == "pve-vm-cpu-conf" {
			err = d.checkCPU(values)
		}

		return err
	}
	if base, ok := strings.CutSuffix(f.name, "-list"); ok {
		for _, one := range splitList(s) {
			if err := d.checkNamed(base, one); err != nil {
				return err
			}
		}

		return nil
	}
	if base, ok := strings.CutSuffix(f.name, "-opt"); ok {
		if s == "" {
			return nil
		}

		return d.checkNamed(base, s)
	}

	return d.checkNamed(f.name, s)
}

var listSeparator = regexp.MustCompile(`[,;\s\x00]+`)

// splitList splits as Proxmox VE does: at commas, semicolons and white space.
func splitList(s string) []string {
	return slices.DeleteFunc(listSeparator.Split(s, -1), func(part string) bool { return part == "" })
}

const label = `[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?`

// simple are the formats that are one pattern; the text is what is said of a value that has another form, with %s for it.
var simple = map[string]struct {
	pattern *regexp.Regexp
	text    string
}{
	"urlencoded":    {regexp.MustCompile(`^[-%a-zA-Z0-9_.!~*'()]*\n?$`), "invalid urlencoded string: %s"},
	"pve-configid":  {regexp.MustCompile(`(?i)^[a-z][a-z0-9_-]+\n?$`), "invalid configuration ID '%s'"},
	"pve-bridge-id": {regexp.MustCompile(`^[-_.\pL\pN]+\n?$`), "invalid bridge ID '%s'"},
	"pve-vmid":      {regexp.MustCompile(`^[1-9][0-9]{2,8}\n?$`), "value does not look like a valid VM ID"},
	"pve-node":      {regexp.MustCompile(`^` + label + `\n?$`), "value does not look like a valid node name"},
	"mac-addr": {
		regexp.MustCompile(`(?i)^[a-f0-9][02468ace](:[a-f0-9]{2}){5}\n?$`), "value does not look like a valid unicast MAC address",
	},
	"dns-name":      {regexp.MustCompile(`^(` + label + `\.)*` + label + `\n?$`), "value does not look like a valid DNS name"},
	"pve-iface":     {regexp.MustCompile(`(?i)^[a-z][a-z0-9_]{1,20}([:.]\d+)?\n?$`), "invalid network interface name '%s'"},
	"disk-size":     {regexp.MustCompile(`^\d+(\.\d+)?([KMGT](iB)?)?\n?$`), "value does not look like a valid disk size: %s"},
	"pve-tag":       {regexp.MustCompile(`(?i)^[a-z0-9_][a-z0-9_\-+.]*\n?$`), "invalid characters in tag"},
	"pve-volume-id": {regexp.MustCompile(`(?i)^[a-z][a-z0-9\-_.]*[a-z0-9]:.+\n?$`), "unable to parse volume ID '%s'"},
	"pve-poolid":    {regexp.MustCompile(`^[A-Za-z0-9.\-_]+(/[A-Za-z0-9.\-_]+){0,2}\n?$`), "pool name '%s' contains invalid characters"},
	"pve-ha-node":   {regexp.MustCompile(`^` + label + `(:\d+)?\n?$`), "value does not look like a valid ha node"},
	"pve-ha-group-node": {
		regexp.MustCompile(`^` + label + `(:\d+)?\n?$`), "value does not look like a valid ha group node",
	},
	"pve-ha-resource-id": {regexp.MustCompile(`^[a-z]+:\S+\n?$`), "value does not look like a valid ha resource id"},
	"pve-ha-resource-or-vm-id": {
		regexp.MustCompile(`^([a-z]+:\S+|\d+)\n?$`), "value does not look like a valid ha resource id",
	},
	"pve-task-status-type": {regexp.MustCompile(`(?i)^(ok|error|warning|unknown)\n?$`), "invalid status '%s'"},
	"pve-storage-content": {
		regexp.MustCompile(`^(images|rootdir|vztmpl|iso|backup|snippets|none|import)$`), "invalid content type '%s'",
	},
	"pve-hotplug-feature": {regexp.MustCompile(`^(network|disk|cpu|memory|usb|cloudinit)\n?$`), "invalid hotplug feature '%s'"},
	"startup-part":        {regexp.MustCompile(`^((order=)?\d+|up=\d+|down=\d+)\n?$`), "unable to parse startup options"},
	"cpuset-part":         {regexp.MustCompile(`^\d+(-\d+)?$`), "unable to parse cpuset option"},
}

// checkNamed checks a text by a format of Proxmox VE's own. One that the description names and nothing here knows takes
// every text.
func (d *Description) checkNamed(name, s string) error {
	if f, ok := simple[name]; ok {
		if f.pattern.MatchString(s) {
			return nil
		}

		return errors.New(strings.ReplaceAll(f.text, "%s", s))
	}
	switch name {
	case "pve-storage-id":
		return checkID(s, "storage")
	case "pve-volume-id-or-qm-path":
		return d.checkVolumeOr(s, "none", "cdrom")
	case "pve-volume-id-or-absolute-path":
		return d.checkVolumeOr(s)
	case "storage-pair":
		return d.checkPair(s)
	case "pve-hotplug-features":
		return d.checkParts("pve-hotplug-feature", s, "0", "1")
	case "pve-startup-order":
		return d.checkStartup(s)
	case "pve-cpuset":
		return d.checkParts("cpuset-part", s)
	case "pve-qm-bootdev":
		return d.checkBootDevice(s)
	case "pve-qm-bootdisk":
		if pve.DiskKey.MatchString(s) {
			return nil
		}

		return fmt.Errorf("invalid boot disk '%s'", s)
	case "pve-phys-bits":
		return checkPhysBits(s)
	}

	return checkAddress(name, s)
}

func checkPhysBits(s string) error {
	if n, err := strconv.Atoi(s); s == "host" || err == nil && n >= 8 && n <= 64 {
		return nil
	}

	return errors.New("value must be an integer between 8 and 64 or 'host'")
}

// checkVolumeOr checks a volume; a path and some words are right too.
func (d *Description) checkVolumeOr(s string, words ...string) error {
	if strings.HasPrefix(s, "/") || slices.Contains(words, s) {
		return nil
	}

	return d.checkNamed("pve-volume-id", s)
}

func (d *Description) checkStartup(s string) error {
	if s == "" || s == "0" {
		return errors.New("unable to parse startup options")
	}

	return d.checkParts("startup-part", s)
}

func (d *Description) checkParts(name, s string, whole ...string) error {
	if slices.Contains(whole, s) {
		return nil
	}
	for _, part := range splitList(s) {
		if err := d.checkNamed(name, part); err != nil {
			return err
		}
	}

	return nil
}

var idText = regexp.MustCompile(`(?i)^[a-z][a-z0-9\-_.]*[a-z0-9]\n?$`)

func checkID(s, what string) error {
	switch {
	case len(s) < 2:
		return fmt.Errorf("%s ID '%s' cannot be shorter than 2 characters", what, s)
	case !idText.MatchString(s):
		return fmt.Errorf("%s ID '%s' contains illegal characters", what, s)
	}

	return nil
}

func (d *Description) checkPair(s string) error {
	if s == "1" {
		return nil
	}
	from, to, both := strings.Cut(s, ":")
	if !both {
		to = from
	}
	for _, id := range []string{from, to} {
		if err := checkID(id, "storage"); err != nil {
			return fmt.Errorf("entry '%s' contains invalid ID - %w", s, err)
		}
	}

	return nil
}

func (d *Description) checkBootDevice(s string) error {
	base := strings.TrimRight(s, "0123456789")
	n, err := strconv.Atoi(s[len(base):])
	last, numbered := d.indexes[base]
	bootable := slices.Contains([]string{"net", "usb", "hostpci", "ide", "sata", "scsi", "virtio", "unused"}, base)
	if err == nil && numbered && n <= last && bootable {
		return nil
	}

	return fmt.Errorf("invalid boot device '%s'", s)
}

func (d *Description) checkCPU(values map[string]any) error {
	model, _ := values["cputype"].(string)
	flags, _ := values["flags"].(string)
	custom, isCustom := strings.CutPrefix(model, "custom-")
	switch {
	case model == "":
		return errors.New("CPU is missing cputype")
	case isCustom:
		return fmt.Errorf("Custom cputype '%s' not found", custom) // Proxmox VE's own words
	case !d.models[model]:
		return fmt.Errorf("Built-in cputype '%s' is not defined (missing 'custom-' prefix?)", model)
	}
	for _, one := range strings.Split(flags, ";") {
		if flags != "" && (one == "" || !strings.ContainsAny(one[:1], "+-") || !slices.Contains(d.flags, one[1:])) {
			return fmt.Errorf("VM-specific CPU flags must be a subset of: %s", strings.Join(d.flags, ", "))
		}
	}

	return nil
}

// checkAddress checks addresses and networks.
func checkAddress(name, s string) error {
	kinds := map[string]string{
		"ipv4": "IPv4 address", "ipv6": "IPv6 address", "ip": "IP address", "CIDRv4": "IPv4 CIDR network",
		"CIDRv6": "IPv6 CIDR network", "CIDR": "CIDR network", "pve-ipv4-config": "ipv4 network configuration",
		"pve-ipv6-config": "ipv6 network configuration",
	}
	if name == "address" {
		if isAddress(s, true, true) || simple["dns-name"].pattern.MatchString(s) {
			return nil
		}

		return fmt.Errorf("value does not look like a valid address: %s", s)
	}
	what, known := kinds[name]
	if !known {
		return nil
	}
	word := strings.HasPrefix(name, "pve-ip") && (s == "dhcp" || s == "manual" || s == "auto" && name == "pve-ipv6-config")
	four, six := !strings.Contains(name, "v6"), !strings.Contains(name, "v4")
	if word || strings.HasPrefix(name, "ip") && isAddress(s, four, six) || !strings.HasPrefix(name, "ip") && isNetwork(s, four, six) {
		return nil
	}

	return fmt.Errorf("value does not look like a valid %s", what)
}

func isAddress(s string, four, six bool) bool {
	a, err := netip.ParseAddr(s)

	return err == nil && a.Zone() == "" && (a.Is4() && four || a.Is6() && six)
}

func isNetwork(s string, four, six bool) bool {
	address, bits, _ := strings.Cut(s, "/")
	n, err := strconv.Atoi(bits)
	a, bad := netip.ParseAddr(address)
	if err != nil || bad != nil || n < 8 {
		return false
	}

	return a.Is4() && four && n <= 32 || a.Is6() && six && n <= 128
}
