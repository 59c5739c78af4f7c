// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/image"
	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
)

const (
	defaultMemoryMiB = 512
	defaultCPU       = "kvm64"
)

// bootable reads the image that a file holds, nil when firmware finds nothing in it.
func bootable(data []byte) *guest.Image {
	i, err := image.Decode(data)
	if err != nil {
		return nil
	}

	return i
}

// defaultBoot returns the order that a VM gets which names none: the first disk, the CD, the network.
func defaultBoot(config map[string]string) []string {
	var disk, cd, network string
	for _, k := range driveOrder(config) {
		isCD := pve.ParseProperties("file", config[k]).Get("media") == "cdrom"
		switch {
		case isCD && cd == "":
			cd = k
		case !isCD && disk == "":
			disk = k
		}
	}
	for i := range 32 {
		if k := "net" + strconv.Itoa(i); config[k] != "" {
			network = k

			break
		}
	}

	return slices.DeleteFunc([]string{disk, cd, network}, func(s string) bool { return s == "" })
}

// driveOrder lists drives by bus and number.
func driveOrder(config map[string]string) []string {
	rank := func(k string) int {
		bus := strings.TrimRight(k, "0123456789")
		n, _ := strconv.Atoi(strings.TrimPrefix(k, bus)) // a drive's key ends in a number

		return slices.Index([]string{"ide", "scsi", "virtio", "sata"}, bus)*100 + n
	}
	var keys []string
	for k := range config {
		if pve.DiskKey.MatchString(k) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })

	return keys
}

func bootOrder(config map[string]string) []string {
	boot := config["boot"]
	p := pve.ParseProperties("legacy", boot)
	if order, ok := p.Value["order"]; ok {
		return strings.Split(order, ";")
	}
	if legacy := p.Get("legacy"); legacy != "" { // "cdn": disk, CD, network
		byKind := map[rune]string{}
		for _, k := range defaultBoot(config) {
			switch {
			case strings.HasPrefix(k, "net"):
				byKind['n'] = k
			case pve.ParseProperties("file", config[k]).Get("media") == "cdrom":
				byKind['d'] = k
			default:
				byKind['c'] = cmp.Or(config["bootdisk"], k)
			}
		}
		var order []string
		for _, r := range legacy {
			if k := byKind[r]; k != "" {
				order = append(order, k)
			}
		}

		return order
	}

	return defaultBoot(config)
}

// machine puts a VM together as its guest sees it, nil when nothing boots.
func (c *Cluster) machine(v *vm, p *process) *guest.Machine {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()

	config := maps.Clone(p.hardware)
	for k := range config {
		if pve.DriveKey.MatchString(k) {
			delete(config, k)
		}
	}
	for k, s := range v.Config { // drives are as they are now: media change and disks are added while it runs
		if pve.DriveKey.MatchString(k) {
			config[k] = s
		}
	}

	m := c.board(v, config)
	m.ShutdownRequested = p.shutdown
	for _, k := range driveOrder(config) {
		c.plug(v, m, k, config)
	}

	for _, k := range bootOrder(config) {
		if pve.DiskKey.MatchString(k) && c.boots(m, k, config) {
			return m
		}
	}

	return nil
}

func (c *Cluster) board(v *vm, config map[string]string) *guest.Machine {
	cpu := pve.ParseProperties("cputype", config["cpu"])
	m := &guest.Machine{
		Host: v.Host, VMID: v.ID, Name: cmp.Or(config["name"], "VM"+strconv.Itoa(v.ID)),
		UUID:      pve.ParseProperties("", config["smbios1"]).Get("uuid"),
		MemoryMiB: c.balloon(v, config),
		Cores:     atoi(config["cores"], 1) * atoi(config["sockets"], 1),
		CPUType:   cmp.Or(cpu.Get("cputype"), defaultCPU), BIOS: cmp.Or(config["bios"], "seabios"),
		AgentEnabled: agentEnabled(config["agent"]), Type: config["machine"],
		Net: c.s.net, Clock: c.s.opts.Clock, Trace: c.s.opts.Trace, PullImage: c.s.pull,
		Faults: c.s.opts.Faults, Names: c.s.names(v),
	}
	for i := range 32 {
		s, ok := config["net"+strconv.Itoa(i)]
		if !ok {
			continue
		}
		if n := pve.ParseNet(s); !n.Rest.On("link_down") {
			m.NICs = append(m.NICs, guest.NIC{Index: i, MAC: n.MAC, Bridge: n.Bridge, VLAN: n.Tag, MTU: n.MTU, Model: n.Model})
		}
	}
	for i := range 16 {
		if s, ok := config["hostpci"+strconv.Itoa(i)]; ok {
			d := pve.ParseProperties("host", s)
			m.PCI = append(m.PCI, guest.PCI{Address: d.Get("host"), Mapping: d.Get("mapping")})
		}
	}

	return m
}

func atoi(s string, fallback int) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return fallback
	}

	return n
}

// plug adds a drive to a machine.
func (c *Cluster) plug(v *vm, m *guest.Machine, key string, config map[string]string) {
	p := pve.ParseProperties("file", config[key])
	vol, err := c.volume(v.Host, p.Get("file"))
	if err != nil {
		return
	}

	if p.Get("media") == "cdrom" {
		m.CDDrives = append(m.CDDrives, guest.CDDrive{Device: key, Size: vol.Size})
	}
	switch {
	case strings.Contains(vol.Name, "-cloudinit"):
		m.CloudInit = cloudInit(m.Name, config)
	case p.Get("media") == "cdrom":
		if data, err := c.read(vol); err == nil {
			m.CD = bootable(data)
		}
	default:
		m.Disks = append(m.Disks, c.disk(vol, key, config))
	}
}

// boots reports whether firmware finds something on a device, and notes it in m.
func (c *Cluster) boots(m *guest.Machine, key string, config map[string]string) bool {
	if pve.ParseProperties("file", config[key]).Get("media") == "cdrom" {
		m.BootedFromCD = m.CD != nil && runsOn(m.CD, config)

		return m.BootedFromCD
	}

	for _, d := range m.Disks {
		if d.Device == key && (len(d.Load()) > 0 || (d.Image != nil && runsOn(d.Image, config))) {
			m.BootDisk = d

			return true
		}
	}

	return false
}

// runsOn reports whether the machine's firmware and processor can run an image.
func runsOn(i *guest.Image, config map[string]string) bool {
	arch := map[string]string{"": "amd64", "x86_64": "amd64", "aarch64": "arm64"}[config["arch"]]

	return i.Arch == arch && (!i.SecureBoot || config["bios"] == "ovmf")
}

func cloudInit(name string, config map[string]string) *guest.CloudInit {
	ci := &guest.CloudInit{Hostname: name, User: config["ciuser"], DNSServers: pve.SplitList(config["nameserver"]),
		DNSDomain: config["searchdomain"]}
	for i := range 32 {
		s, ok := config["ipconfig"+strconv.Itoa(i)]
		if !ok {
			ci.IPConfigs = append(ci.IPConfigs, guest.IPConfig{})

			continue
		}
		p := pve.ParseProperties("", s)
		ip := guest.IPConfig{DHCP4: p.Get("ip") == "dhcp"}
		ip.IPv4, _ = netip.ParsePrefix(p.Get("ip")) // absent or a word: none; the schema checked the rest
		ip.IPv6, _ = netip.ParsePrefix(p.Get("ip6"))
		ip.Gateway4, _ = netip.ParseAddr(p.Get("gw"))
		ip.Gateway6, _ = netip.ParseAddr(p.Get("gw6"))
		ci.IPConfigs = append(ci.IPConfigs, ip)
	}
	for n := len(ci.IPConfigs); n > 0 && ci.IPConfigs[n-1] == (guest.IPConfig{}); n-- {
		ci.IPConfigs = ci.IPConfigs[:n-1]
	}

	return ci
}
