// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site

import (
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
)

// bootDevices returns the devices of "order=scsi0;net0".
func bootDevices(boot string) (devices []string, ordered bool) {
	order, ok := strings.CutPrefix(boot, "order=")
	if !ok {
		return nil, boot == ""
	}

	return pve.SplitList(order), true
}

func printBoot(devices []string) string {
	if len(devices) == 0 {
		return ""
	}

	return "order=" + strings.Join(devices, ";")
}

// unboot takes a device that goes out of the order in which a VM boots.
func (c *Cluster) unboot(v *vm, key string) {
	devices, ordered := bootDevices(v.wanted()["boot"])
	if !ordered || !slices.Contains(devices, key) {
		return
	}
	c.setBoot(v, slices.DeleteFunc(devices, func(d string) bool { return d == key }))
}

// bootCD adds a CD drive that is new at the end of the order.
func (c *Cluster) bootCD(v *vm, key string) {
	devices, ordered := bootDevices(v.wanted()["boot"])
	isCD := pve.ParseProperties("file", v.Config[key]).Get("media") == "cdrom"
	if !isCD || strings.Contains(v.Config[key], "-cloudinit") || !ordered || len(devices) == 0 || slices.Contains(devices, key) {
		return
	}
	c.setBoot(v, append(devices, key))
}

func (c *Cluster) setBoot(v *vm, devices []string) {
	if c.s.running[vmKey{c.c.Name, v.ID}] == nil {
		v.Config["boot"] = printBoot(devices)

		return
	}
	if v.Pending == nil {
		v.Pending = map[string]string{}
	}
	v.Pending["boot"] = printBoot(devices)
}

// checkBoot refuses devices that the VM has not.
func (v *vm) checkBoot(boot string) error {
	devices, _ := bootDevices(boot)
	for _, d := range devices {
		if _, ok := v.wanted()[d]; !ok {
			return pve.Errorf("invalid bootorder: device '%s' does not exist'", d) // with Proxmox VE's own quotes
		}
	}

	return nil
}

// checkSizes refuses a balloon that is bigger than the memory.
func (v *vm) checkSizes(params map[string]string) error {
	all := v.wanted()
	for _, k := range []string{"memory", "balloon"} {
		if value, ok := params[k]; ok {
			all[k] = value
		}
	}
	memory := strings.TrimPrefix(all["memory"], "current=")
	if atoi(all["balloon"], 0) > atoi(memory, defaultMemoryMiB) {
		return pve.Errorf("balloon value too large (must be smaller than assigned memory)")
	}

	return nil
}

// unlocked fails with what holds the VM.
func (v *vm) unlocked() error {
	if v.Lock == "" {
		return nil
	}

	return pve.Errorf("VM is locked (%s)", v.Lock)
}
