// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/talos-proxmox/talos-proxmox/internal/proxmox"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// machine describes a VM or a container that exists.
type machine struct {
	ID   int    `json:"vmid"`
	Name string `json:"name"`
	Node string `json:"node"`
}

// readMachines asks for everything that has an id, once.
func (e *examiner) readMachines() {
	if len(e.machines) > 0 {
		return
	}
	var all []machine
	if err := e.get("/cluster/resources?type=vm", &all); err != nil {
		return // the check of ids tells it
	}
	for _, m := range all {
		e.machines[m.ID] = m
	}
}

// exists reports whether the node's VM is there, as far as id and name tell.
func (e *examiner) exists(n spec.NamedNode) bool {
	m, ok := e.machines[spec.Value(n.VMID)]

	return ok && m.Name == n.Name
}

// vmIDs finds ids that others have.
func (e *examiner) vmIDs() error {
	if err := e.reachable(); err != nil {
		return err
	}
	e.readMachines()
	for _, n := range e.Config.Nodes {
		id := spec.Value(n.VMID)
		m, taken := e.machines[id]
		if id == 0 || !taken || m.Name == n.Name {
			continue
		}
		free := id
		for e.machines[free].ID != 0 || e.plans(free) {
			free++
		}
		e.found("nodes."+n.Name+".vmId", fmt.Sprintf("%d is the id of %q on host %s", id, m.Name, m.Node),
			fmt.Sprintf("choose another: %d is free", free))
	}

	return nil
}

// plans reports whether a node of the stack has the id.
func (e *examiner) plans(id int) bool {
	return slices.ContainsFunc(e.Config.Nodes, func(n spec.NamedNode) bool { return spec.Value(n.VMID) == id })
}

// disks finds disks that VMs of nodes have and the stack file does not.
func (e *examiner) disks() error {
	if err := e.reachable(); err != nil {
		return err
	}
	e.readMachines()
	for _, n := range e.Config.Nodes {
		if !e.exists(n) {
			continue
		}
		call, cancel := context.WithTimeout(e.ctx, e.Timeout)
		is, err := e.client.Inspect(call, *n.VMID)
		cancel()
		if proxmox.Status(err) == http.StatusForbidden {
			return skipf("%s", reason(err))
		}
		if err != nil || is == nil {
			continue // the checks of hosts and ids tell it
		}
		wanted := []string{n.OSDisk.Interface()}
		for _, d := range n.DataDisks() {
			wanted = append(wanted, d.Interface())
		}
		if added := is.AddedDisks(wanted); len(added) > 0 {
			e.found("nodes."+n.Name+".disks", fmt.Sprintf("VM %d on host %s has the disk %s, which the stack file does not have; an up "+
				"after a refresh is refused, since the provider takes no disk out", *n.VMID, is.Host, strings.Join(added, ", ")),
				fmt.Sprintf("was it added by hand? Take it out on host %s: %s (its data stays, as an unused disk); or write it under nodes.%s.disks\n"+
					"then run: pulumi up --refresh", is.Host, proxmox.TakeOut(*n.VMID, added), n.Name))
		}
	}

	return nil
}

// capacity finds nodes that do not fit on their hosts.
func (e *examiner) capacity() error {
	if err := e.reachable(); err != nil {
		return err
	}
	for _, host := range e.hostNames() {
		if !e.up[host] {
			continue
		}
		var is struct {
			CPU struct {
				CPUs int `json:"cpus"`
			} `json:"cpuinfo"`
			Memory struct {
				Total int64 `json:"total"`
				Free  int64 `json:"free"`
			} `json:"memory"`
		}
		if err := e.get("/nodes/"+url.PathEscape(host)+"/status", &is); err != nil {
			if proxmox.Status(err) == http.StatusForbidden {
				return skipf("%s", reason(err))
			}

			continue
		}
		e.capacityOf(host, is.CPU.CPUs, is.Memory.Total, is.Memory.Free)
	}

	return nil
}

func (e *examiner) capacityOf(host string, cpus int, total, free int64) {
	const mib = int64(1) << 20
	var all, added int64
	for _, n := range e.Config.Nodes {
		if spec.Value(n.Host) != host {
			continue
		}
		memory := int64(spec.Value(n.Memory)) * mib
		all += memory
		if !e.exists(n) {
			added += memory
		}
		if want := spec.Value(n.CPU) * spec.Value(n.Sockets); cpus > 0 && want > cpus {
			e.found("nodes."+n.Name+".cpu", fmt.Sprintf("%d cores, and host %s has %d: Proxmox VE does not start such a VM", want, host, cpus),
				"choose fewer cores")
		}
	}
	switch {
	case total > 0 && all > total:
		e.found("proxmox.hosts."+host, fmt.Sprintf("its nodes get %d MiB of memory, and the host has %d MiB", all/mib, total/mib),
			"give nodes less memory, or move some to other hosts")
	case added > free && free > 0:
		e.warn("proxmox.hosts."+host, fmt.Sprintf("new nodes get %d MiB of memory, and %d MiB are free on the host now", added/mib, free/mib),
			"stop something there, give nodes less memory, or move some to other hosts")
	}
}

// ports returns those that machines of a cluster, hosts and servers have open; any answer shows that an
// address is taken. Behind a proxy only those of Talos and Kubernetes count: proxies answer for others.
func ports(address string) []int {
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: "https", Host: net.JoinHostPort(address, "50000")}})
	if err == nil && proxy != nil {
		return []int{50000, 6443}
	}

	return []int{50000, 6443, 22, 8006}
}

// addresses finds addresses that something else has already.
func (e *examiner) addresses() error {
	e.readMachinesIfPossible()
	type candidate struct{ setting, address string }
	var all []candidate
	anyone := false
	for _, n := range e.Config.Nodes {
		if e.exists(n) {
			anyone = true

			continue
		}
		for _, a := range n.Addresses() {
			all = append(all, candidate{"nodes." + n.Name + ".networks", a.String()})
		}
	}
	if vip := spec.Value(e.Config.Cluster.VIP); vip != "" && !anyone {
		all = append(all, candidate{"cluster.vip", vip})
	}
	var mu sync.Mutex
	var wait sync.WaitGroup
	taken := map[string]int{}
	for _, c := range all {
		for _, port := range ports(c.address) {
			wait.Go(func() {
				if e.answers(c.address, port) {
					mu.Lock()
					defer mu.Unlock()
					taken[c.address] = port
				}
			})
		}
	}
	wait.Wait()
	for _, c := range all {
		if port, ok := taken[c.address]; ok {
			e.found(c.setting, fmt.Sprintf("something answers at %s already, on port %d", c.address, port), "choose an address that is free")
		}
	}

	return nil
}

func (e *examiner) readMachinesIfPossible() {
	if e.client != nil {
		e.readMachines()
	}
}

// answers reports whether a machine answers at an address and port, with whatever it says. It asks as every
// HTTP client does, so that it reaches what HTTPS_PROXY leads to.
func (e *examiner) answers(address string, port int) bool {
	code, err := e.request("https://"+net.JoinHostPort(address, strconv.Itoa(port)), unverified(), nil)
	if err == nil {
		return code != http.StatusBadGateway && code != http.StatusGatewayTimeout
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return false
	}
	text := reason(err)
	for _, nobody := range []string{
		"refused", "no route", "unreachable", "Bad Gateway", "Gateway Timeout", "Service Unavailable", "EOF", "reset",
	} {
		if strings.Contains(text, nobody) {
			return false
		}
	}

	return true // TLS was refused, or something spoke another protocol
}

// wantedMappings returns the mappings that nodes name, by kind and name, and where.
func wantedMappings(c spec.Config) map[string]map[string]string {
	wanted := map[string]map[string]string{"pci": {}, "usb": {}}
	for _, n := range c.Nodes {
		if n.GPU != nil && n.GPU.Mapping != nil {
			wanted["pci"][*n.GPU.Mapping] = "nodes." + n.Name + ".gpu.mapping"
		}
		for i, u := range n.USB {
			if u.Mapping != nil {
				wanted["usb"][*u.Mapping] = fmt.Sprintf("nodes.%s.usb[%d].mapping", n.Name, i)
			}
		}
	}

	return wanted
}

// mappings finds mappings of devices that are not there.
func (e *examiner) mappings() error {
	if err := e.reachable(); err != nil {
		return err
	}
	for _, kind := range []string{"pci", "usb"} {
		wanted := wantedMappings(e.Config)[kind]
		if len(wanted) == 0 {
			continue
		}
		var all []struct {
			ID string `json:"id"`
		}
		if err := e.get("/cluster/mapping/"+kind, &all); err != nil {
			e.found("", "the API does not list its mappings: "+reason(err), "grant Mapping.Audit on /mapping/"+kind)

			continue
		}
		have := map[string]bool{}
		for _, m := range all {
			have[m.ID] = true
		}
		for _, name := range sortedKeys(wanted) {
			if !have[name] {
				e.found(wanted[name], fmt.Sprintf("there is no mapping %q", name),
					"make it under Datacenter, Resource Mappings; there are: "+strings.Join(sortedKeys(have), ", "))
			}
		}
	}

	return nil
}
