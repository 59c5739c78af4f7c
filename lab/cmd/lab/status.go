// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/talos-proxmox/talos-proxmox/lab/site"
	"github.com/talos-proxmox/talos-proxmox/lab/talos"
)

// status is the site at one moment.
type status struct {
	Site     string                `json:"site"`
	Gateway  string                `json:"gateway"`
	Speed    float64               `json:"speed"`
	Hosts    []hostStatus          `json:"hosts"`
	VMs      []vmStatus            `json:"vms"`
	Nodes    []nodeStatus          `json:"nodes"`
	Clusters []talos.ClusterStatus `json:"clusters"`
}

type hostStatus struct {
	Name      string   `json:"name"`
	Cluster   string   `json:"cluster"`
	Cores     int      `json:"cores"`
	MemoryMiB int      `json:"memoryMiB"`
	VMs       int      `json:"vms"`
	Files     []string `json:"files"` // volume ids of images on its storages
}

type vmStatus struct {
	VMID    int    `json:"vmid"`
	Name    string `json:"name"`
	Host    string `json:"host"`
	Status  string `json:"status"` // "running", "stopped"
	State   string `json:"state"`  // what is inside
	Pending bool   `json:"pending"`
}

type nodeStatus struct {
	talos.NodeStatus

	Address string `json:"address"`
	Talos   string `json:"talos"`
}

func (d *daemon) status() status {
	s := status{
		Site: d.options.site, Gateway: d.gateway.Addr(), Speed: d.speed,
		Hosts: []hostStatus{}, VMs: []vmStatus{}, Nodes: []nodeStatus{}, Clusters: []talos.ClusterStatus{},
	}
	for _, c := range d.site.Clusters() {
		d.addCluster(&s, c)
	}

	t := d.nodes.Status()
	for _, n := range t.Nodes {
		v := nodeStatus{NodeStatus: n, Talos: n.Version}
		if len(n.Addresses) > 0 {
			v.Address = n.Addresses[0].String()
		}
		s.Nodes = append(s.Nodes, v)
	}
	slices.SortFunc(s.Nodes, func(a, b nodeStatus) int { return strings.Compare(a.Hostname, b.Hostname) })
	s.Clusters = append(s.Clusters, t.Clusters...)

	return s
}

func (d *daemon) addCluster(s *status, c *site.Cluster) {
	count := map[string]int{}
	for _, v := range c.VMs() {
		count[v.Host]++
		power := "stopped"
		if v.Running {
			power = "running"
		}
		s.VMs = append(s.VMs, vmStatus{VMID: v.ID, Name: v.Name, Host: v.Host, Status: power, State: v.State, Pending: v.Pending})
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
		s.Hosts = append(s.Hosts, hostStatus{
			Name: h.Name, Cluster: c.Name(), Cores: h.Cores, MemoryMiB: h.MemoryMiB, VMs: count[h.Name], Files: files,
		})
	}
}

func printStatus(o options) error {
	var s status
	if err := call(o, http.MethodGet, "/status", &s); err != nil {
		return err
	}
	if o.json {
		return printJSON(s)
	}

	t := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	row := func(cells ...any) { _, _ = fmt.Fprintln(t, strings.TrimSuffix(fmt.Sprintln(tabbed(cells)...), "\n")) } // the terminal is gone when this fails
	row("HOST", "CLUSTER", "CORES", "MEMORY", "VMS", "IMAGES")
	for _, h := range s.Hosts {
		row(h.Name, h.Cluster, h.Cores, fmt.Sprintf("%d GiB", h.MemoryMiB>>10), h.VMs, len(h.Files))
	}
	row("")
	row("VM", "NAME", "HOST", "STATUS", "INSIDE")
	for _, v := range s.VMs {
		row(v.VMID, v.Name, v.Host, v.Status, v.State)
	}
	row("")
	row("NODE", "ADDRESS", "STAGE", "TALOS", "ROLE", "CLUSTER", "PROBLEM")
	for _, n := range s.Nodes {
		row(n.Hostname, n.Address, n.Stage, n.Talos, n.Role, n.Cluster, n.Problem)
	}
	row("")
	row("CLUSTER", "KUBERNETES", "ENDPOINT", "HEALTHY", "MEMBERS")
	for _, c := range s.Clusters {
		row(c.Name, c.Kubernetes, c.Endpoint, c.Healthy, strings.Join(c.Members, ","))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("printing the status: %w", err)
	}

	return nil
}

// tabbed puts a tab after each cell but the last.
func tabbed(cells []any) []any {
	var parts []string
	for _, c := range cells {
		parts = append(parts, fmt.Sprint(c))
	}

	return []any{strings.Join(parts, "\t")}
}

func printJSON(v any) error {
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("printing: %w", err)
	}

	return nil
}

// printTrace prints the site's operations; it needs no running lab.
func printTrace(o options) error {
	f, err := os.Open(o.path("trace.jsonl"))
	if err != nil {
		return fmt.Errorf("there is no trace on %s yet: %w", o.site, err)
	}
	defer func() { _ = f.Close() }() // only read

	if o.json {
		if _, err := io.Copy(os.Stdout, f); err != nil {
			return fmt.Errorf("printing the trace: %w", err)
		}

		return nil
	}

	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e site.Event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // the last line of a lab that was killed
		}
		fmt.Printf("%s  %8s  %-18s %-24s %s\n", e.Start.Format("15:04:05.000"), e.End.Sub(e.Start).Round(time.Millisecond), e.Op, e.Object, e.Error)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading the trace: %w", err)
	}

	return nil
}
