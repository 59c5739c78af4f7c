// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package daemon

import (
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/site"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/node"
)

// Status describes the site at one moment.
type Status struct {
	Site     string               `json:"site"`
	Gateway  string               `json:"gateway"`
	Speed    float64              `json:"speed"`
	Hosts    []HostStatus         `json:"hosts"`
	VMs      []VMStatus           `json:"vms"`
	Nodes    []NodeStatus         `json:"nodes"`
	Clusters []node.ClusterStatus `json:"clusters"`
}

// HostStatus describes a Proxmox VE host.
type HostStatus struct {
	Name      string   `json:"name"`
	Cluster   string   `json:"cluster"`
	Cores     int      `json:"cores"`
	MemoryMiB int      `json:"memoryMiB"`
	VMs       int      `json:"vms"`
	Files     []string `json:"files"` // volume ids of images on its storages
}

// VMStatus describes a virtual machine.
type VMStatus struct {
	VMID    int    `json:"vmid"`
	Name    string `json:"name"`
	Host    string `json:"host"`
	Status  string `json:"status"` // "running", "stopped"
	State   string `json:"state"`  // what is inside
	Pending bool   `json:"pending"`
}

// NodeStatus describes a Talos node that has booted.
type NodeStatus struct {
	node.NodeStatus

	Address string `json:"address"`
	Talos   string `json:"talos"`
}

// Status returns the site at this moment.
func (d *Daemon) Status() Status {
	s := Status{
		Site: d.opts.Dir, Gateway: d.gateway.Addr(), Speed: d.opts.Speed,
		Hosts: []HostStatus{}, VMs: []VMStatus{}, Nodes: []NodeStatus{}, Clusters: []node.ClusterStatus{},
	}
	for _, c := range d.site.Clusters() {
		d.addCluster(&s, c)
	}

	t := d.nodes.Status()
	for _, n := range t.Nodes {
		v := NodeStatus{NodeStatus: n, Talos: n.Version}
		if len(n.Addresses) > 0 {
			v.Address = n.Addresses[0].String()
		}
		s.Nodes = append(s.Nodes, v)
	}
	slices.SortFunc(s.Nodes, func(a, b NodeStatus) int { return strings.Compare(a.Hostname, b.Hostname) })
	s.Clusters = append(s.Clusters, t.Clusters...)

	return s
}

func (d *Daemon) addCluster(s *Status, c *site.Cluster) {
	count := map[string]int{}
	for _, v := range c.VMs() {
		count[v.Host]++
		power := "stopped"
		if v.Running {
			power = "running"
		}
		s.VMs = append(s.VMs, VMStatus{VMID: v.ID, Name: v.Name, Host: v.Host, Status: power, State: v.State, Pending: v.Pending})
	}
	for _, h := range c.Hosts() {
		files := []string{}
		storages, err := c.Storages(h.Name)
		if err != nil {
			continue
		}
		for _, st := range storages {
			volumes, err := c.Content(h.Name, st.ID, "iso")
			if err != nil {
				continue
			}
			for _, v := range volumes {
				files = append(files, v.VolID)
			}
		}
		s.Hosts = append(s.Hosts, HostStatus{
			Name: h.Name, Cluster: c.Name(), Cores: h.Cores, MemoryMiB: h.MemoryMiB, VMs: count[h.Name], Files: files,
		})
	}
}
