// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
)

// disk returns a volume as a guest uses it. The closures follow the volume when it moves to another storage.
func (c *Cluster) disk(vol *volume, device string, config map[string]string) *guest.Disk {
	p := pve.ParseProperties("file", config[device])

	return &guest.Disk{
		Device: device, Size: vol.Size, Serial: p.Get("serial"), Image: vol.Image,
		DeviceID: c.deviceID(device, p.Get("serial"), config["machine"]), Controller: config["scsihw"], SSD: p.On("ssd"),
		Load: func() []byte {
			data, err := os.ReadFile(c.file(vol))
			if err != nil {
				return nil // never written
			}

			return data
		},
		Store: func(data []byte) error {
			if len(data) == 0 {
				if err := os.RemoveAll(c.file(vol)); err != nil {
					return fmt.Errorf("wiping %s: %w", vol.id(), err)
				}

				return nil
			}

			return writeFile(c.file(vol), data)
		},
	}
}

// deviceID returns what a SCSI disk answers that is asked who it is: since QEMU 10, which Proxmox VE 9 brings, the
// name of its drive; before that its serial number, where it has one. A VM may be pinned to an older board.
func (c *Cluster) deviceID(device, serial, machine string) string {
	qemu := c.PVE() + 1
	if _, version, ok := strings.Cut(machine, "-q35-"); ok {
		qemu = atoi(strings.Split(version, ".")[0], qemu)
	} else if _, version, ok := strings.Cut(machine, "-i440fx-"); ok {
		qemu = atoi(strings.Split(version, ".")[0], qemu)
	}
	if qemu < 10 && serial != "" {
		return serial
	}

	return "drive-" + device
}

func (s *Site) pull(ctx context.Context, ref string) (*guest.Image, error) {
	if s.opts.PullImage == nil {
		return nil, fmt.Errorf("failed to pull image %q: no registry in this site", ref)
	}

	return s.opts.PullImage(ctx, ref)
}

// checkHardware refuses to start what QEMU refuses to start.
func (c *Cluster) checkHardware(v *vm) error {
	h, err := c.host(v.Host)
	if err != nil {
		return err
	}

	if cores := atoi(v.Config["cores"], 1) * atoi(v.Config["sockets"], 1); cores > h.Cores {
		return pve.Errorf("MAX %d vcpus allowed per VM on this node", h.Cores)
	}
	if err := c.checkMemory(v, h); err != nil {
		return err
	}
	for _, k := range driveOrder(v.Config) {
		if strings.HasPrefix(v.Config["machine"], "q35") || strings.HasPrefix(v.Config["machine"], "pc-q35") {
			if k == "ide1" || k == "ide3" {
				return pve.Errorf("start failed: QEMU exited with code 1: Can't create IDE unit 1, bus supports only 1 units")
			}
		}
		file := pve.ParseProperties("file", v.Config[k]).Get("file")
		if file == "none" || file == "cdrom" {
			continue
		}
		if _, err := c.volume(v.Host, file); err != nil {
			return err
		}
	}
	for i := range 32 {
		s, ok := v.Config["net"+strconv.Itoa(i)]
		if !ok {
			continue
		}
		if b := pve.ParseNet(s).Bridge; b != "" && len(h.Bridges) > 0 && !slices.Contains(h.Bridges, b) {
			return pve.Errorf("bridge '%s' does not exist", b)
		}
	}

	return c.checkPCI(v, h)
}

// checkMemory counts what runs on the host already.
func (c *Cluster) checkMemory(v *vm, h HostDef) error {
	if c.memoryOn(h.Name, v)+atoi(v.Config["memory"], defaultMemoryMiB) > h.MemoryMiB {
		return pve.Errorf("start failed: QEMU exited with code 1: cannot set up guest memory 'pc.ram': Cannot allocate memory")
	}

	return nil
}

// memoryOn returns the memory in MiB of all VMs but one that run on a host.
func (c *Cluster) memoryOn(host string, but *vm) int {
	used := 0
	for key, p := range c.s.running {
		if other := c.c.VMs[key.id]; key.cluster == c.c.Name && other != nil && other != but && other.Host == host {
			used += atoi(p.hardware["memory"], defaultMemoryMiB)
		}
	}

	return used
}

// balloon returns the memory in MiB that a host leaves a VM: once four fifths of its own are given away it takes back what
// the VM's balloon allows. On Proxmox VE that comes and goes; here it is settled when the VM boots.
func (c *Cluster) balloon(v *vm, config map[string]string) int {
	memory, least := atoi(config["memory"], defaultMemoryMiB), atoi(config["balloon"], 0)
	h, ok := c.c.host(v.Host)
	if ok && least > 0 && least < memory && 5*(c.memoryOn(v.Host, v)+memory) > 4*h.MemoryMiB {
		return least
	}

	return memory
}

func (c *Cluster) checkPCI(v *vm, h HostDef) error {
	for i := range 16 {
		s, ok := v.Config["hostpci"+strconv.Itoa(i)]
		if !ok {
			continue
		}
		addresses, err := c.pciOf(pve.ParseProperties("host", s), h)
		if err != nil {
			return err
		}
		for _, a := range addresses {
			if len(h.PCI) > 0 && !slices.ContainsFunc(h.PCI, func(have string) bool { return strings.HasPrefix(have, a) }) {
				return pve.Errorf("no PCI device found for '%s'", a)
			}
			if owner := c.pciOwner(v, h, a); owner != 0 {
				return pve.Errorf("PCI device '%s' already in use by VMID '%d'", a, owner)
			}
		}
	}

	return nil
}

// pciOf resolves a hostpci setting to the host's addresses.
func (c *Cluster) pciOf(p pve.Properties, h HostDef) ([]string, error) {
	name := p.Get("mapping")
	if name == "" {
		return []string{fullPCI(p.Get("host"))}, nil
	}
	mapping, ok := c.c.PCI[name]
	if !ok {
		return nil, pve.Errorf("PCI device mapping not found for '%s'", name)
	}
	for _, entry := range mapping.Map {
		if m := pve.ParseProperties("", entry); m.Get("node") == h.Name {
			var all []string
			for _, path := range strings.Split(m.Get("path"), ";") {
				all = append(all, fullPCI(path))
			}

			return all, nil
		}
	}

	return nil, pve.Errorf("PCI device mapping not found for '%s'", name)
}

// fullPCI adds the domain that people leave out.
func fullPCI(address string) string {
	if strings.Count(address, ":") == 1 {
		return "0000:" + address
	}

	return address
}

func (c *Cluster) pciOwner(v *vm, h HostDef, address string) int {
	for key, p := range c.s.running {
		other := c.c.VMs[key.id]
		if key.cluster != c.c.Name || other == nil || other == v || other.Host != h.Name {
			continue
		}
		for i := range 16 {
			s, ok := p.hardware["hostpci"+strconv.Itoa(i)]
			if !ok {
				continue
			}
			if used, err := c.pciOf(pve.ParseProperties("host", s), h); err == nil && slices.Contains(used, address) {
				return other.ID
			}
		}
	}

	return 0
}
