// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package doctor

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// hostNames returns the hosts that nodes are on, sorted.
func (e *examiner) hostNames() []string {
	all := map[string]bool{}
	for _, n := range e.Config.Nodes {
		all[spec.Value(n.Host)] = true
	}

	return sortedKeys(all)
}

// hosts finds whether the hosts are there and up.
func (e *examiner) hosts() error {
	if err := e.reachable(); err != nil {
		return err
	}
	var all []struct {
		Node   string `json:"node"`
		Status string `json:"status"`
	}
	if err := e.get("/nodes", &all); err != nil {
		e.found("", "the API does not list its hosts: "+reason(err), "grant Sys.Audit on /")

		return nil
	}
	var names []string
	for _, h := range all {
		names = append(names, h.Node)
		e.up[h.Node] = h.Status == "online"
	}
	slices.Sort(names)
	for _, host := range e.hostNames() {
		up, there := e.up[host]
		switch {
		case !there:
			e.found("proxmox.hosts."+host, fmt.Sprintf("there is no host %q", host), "write one of: "+strings.Join(names, ", "))
		case !up:
			e.found("proxmox.hosts."+host, "the host is offline", "start it, or see `pvecm status` on the others")
		}
	}

	return nil
}

// disk describes a disk that a node's VM gets.
type disk struct {
	setting, datastore string
	gib                int
}

// disksOf returns the disks of a node's VM, small ones for UEFI, TPM and cloud-init among them.
func disksOf(n spec.NamedNode) []disk {
	at := "nodes." + n.Name
	all := []disk{{at + ".osDisk", spec.Value(n.OSDisk.Datastore), int(spec.Value(n.OSDisk.Size))}}
	for _, d := range n.DataDisks() {
		all = append(all, disk{at + ".disks." + d.Name, spec.Value(d.Datastore), int(spec.Value(d.Size))})
	}
	if n.EFIDisk != nil {
		all = append(all, disk{at + ".efiDisk", spec.Value(n.EFIDisk.Datastore), 0})
	}
	if n.TPM != nil {
		all = append(all, disk{at + ".tpm", spec.Value(n.TPM.Datastore), 0})
	}

	return append(all, disk{at + ".cloudInitDatastore", spec.Value(n.CloudInitDatastore), 0})
}

// imageDatastore returns where the boot image of a node is kept.
func imageDatastore(c spec.Config, n spec.NamedNode) string {
	if own := c.Proxmox.Hosts[spec.Value(n.Host)].ImageDatastore; own != nil {
		return *own
	}

	return spec.Value(c.Image(n).Datastore)
}

// store describes a datastore as one host sees it.
type store struct {
	Storage string `json:"storage"`
	Active  int    `json:"active"`
	Content string `json:"content"`
	Avail   int64  `json:"avail"`
}

const gib = int64(1) << 30

// storage finds whether datastores are there, take what they have to, and have room.
func (e *examiner) storage() error {
	if err := e.reachable(); err != nil {
		return err
	}
	e.readMachines()
	for _, host := range e.hostNames() {
		if !e.up[host] {
			continue
		}
		var all []store
		if err := e.get("/nodes/"+url.PathEscape(host)+"/storage", &all); err != nil {
			e.found("proxmox.hosts."+host, "the host does not list its datastores: "+reason(err), "grant Datastore.Audit on /storage")

			continue
		}
		stores := map[string]store{}
		for _, s := range all {
			stores[s.Storage] = s
		}
		e.storageOf(host, stores)
	}

	return nil
}

func (e *examiner) storageOf(host string, stores map[string]store) {
	wanted, told := map[string]int64{}, map[string]bool{}
	check := func(setting, name, content string) {
		key := name + " " + content
		if told[key] {
			return
		}
		told[key] = true
		e.checkStore(host, setting, name, content, stores)
	}
	for _, n := range e.Config.Nodes {
		if spec.Value(n.Host) != host {
			continue
		}
		check("nodes."+n.Name+".image", imageDatastore(e.Config, n), "iso")
		for _, d := range disksOf(n) {
			check(d.setting, d.datastore, "images")
			if !e.exists(n) {
				wanted[d.datastore] += int64(d.gib) * gib
			}
		}
	}
	for _, name := range sortedKeys(wanted) {
		if s, ok := stores[name]; ok && s.Avail > 0 && wanted[name] > s.Avail {
			e.warn("proxmox.hosts."+host, fmt.Sprintf("new disks on %s are %d GiB, and %d GiB are free there", name, wanted[name]/gib, s.Avail/gib),
				"make room, choose smaller disks or another datastore; thin storage takes more than it has until it is full")
		}
	}
}

func (e *examiner) checkStore(host, setting, name, content string, stores map[string]store) {
	s, there := stores[name]
	switch {
	case !there:
		e.found(setting, fmt.Sprintf("host %s has no datastore %q", host, name), "write one of: "+strings.Join(sortedKeys(stores), ", "))
	case s.Active == 0:
		e.found(setting, fmt.Sprintf("datastore %q is not active on host %s", name, host), "see `pvesm status` on the host")
	case !slices.Contains(strings.Split(s.Content, ","), content):
		e.found(setting, fmt.Sprintf("datastore %q does not take the content %q (it takes %s)", name, content, s.Content),
			fmt.Sprintf("pvesm set %s --content %s", name, strings.Trim(s.Content+","+content, ",")))
	}
}

// bridge describes a host's bridge.
type bridge struct {
	Iface string `json:"iface"`
	VLAN  any    `json:"bridge_vlan_aware"`
	Type  string `json:"type"`
}

// bridges finds whether bridges are there, and let VLANs through where networks name one.
func (e *examiner) bridges() error {
	if err := e.reachable(); err != nil {
		return err
	}
	for _, host := range e.hostNames() {
		if !e.up[host] {
			continue
		}
		var all []bridge
		if err := e.get("/nodes/"+url.PathEscape(host)+"/network?type=any_bridge", &all); err != nil {
			e.found("proxmox.hosts."+host, "the host does not list its bridges: "+reason(err), "grant Sys.Audit and SDN.Audit")

			continue
		}
		have := map[string]bridge{}
		for _, b := range all {
			have[b.Iface] = b
		}
		e.bridgesOf(host, have)
	}

	return nil
}

func (e *examiner) bridgesOf(host string, have map[string]bridge) {
	told := map[string]bool{}
	for _, n := range e.Config.Nodes {
		if spec.Value(n.Host) != host {
			continue
		}
		for _, d := range n.Devices() {
			name := spec.Value(d.Bridge)
			setting := "nodes." + n.Name + ".networks." + d.Name
			key := fmt.Sprint(name, d.VLAN != nil)
			if told[key] {
				continue
			}
			told[key] = true
			b, there := have[name]
			aware := b.Type == "OVSBridge" || fmt.Sprint(b.VLAN) == "1" || fmt.Sprint(b.VLAN) == "true"
			switch {
			case !there:
				e.found(setting+".bridge", fmt.Sprintf("host %s has no bridge %q", host, name), "write one of: "+strings.Join(sortedKeys(have), ", "))
			case d.VLAN != nil && b.Type == "bridge" && !aware:
				e.found(setting+".vlan", fmt.Sprintf("bridge %s of host %s is not VLAN-aware", name, host),
					fmt.Sprintf("pvesh set /nodes/%s/network/%s --type bridge --bridge_vlan_aware 1 && pvesh set /nodes/%s/network", host, name, host))
			}
		}
	}
}
