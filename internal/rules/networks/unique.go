// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package networks

import (
	"fmt"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// claims hold values that only one holder may have, in the whole cluster and across hosts.
type claims struct {
	r      *rules
	kind   string
	holder map[string]string
}

// claim records a value that another setting has too.
func (c *claims) claim(path, value, holder string) {
	if other, twice := c.holder[value]; twice && other != holder {
		c.r.Addf(path, "%s is the %s of %s too: choose another", value, c.kind, other)

		return
	}
	c.holder[value] = holder
}

// unique checks what no two nodes may share.
func (r *rules) unique() {
	of := func(kind string) *claims { return &claims{r: r, kind: kind, holder: map[string]string{}} }
	names, hostnames, ids, macs, addresses := of("name"), of("host name"), of("VM id"), of("MAC address"), of("address")
	for i, n := range r.Config.Nodes {
		at := scope.NodePath(n)
		names.claim(at, n.Name, fmt.Sprintf("node %d", i+1))
		if *n.Hostname != n.Name {
			hostnames.claim(at+".hostname", *n.Hostname, n.Name)
		} else {
			hostnames.claim(at, *n.Hostname, n.Name)
		}
		if n.VMID != nil {
			ids.claim(at+".vmId", fmt.Sprint(*n.VMID), n.Name)
		}
		if n.DataVMID != nil && (n.VMID == nil || *n.VMID != *n.DataVMID) {
			ids.claim(at+".dataVmId", fmt.Sprint(*n.DataVMID), n.Name+" (data)")
		}
		for _, d := range n.Devices() {
			path := check.Key(at+".networks", d.Name)
			macs.claim(path+".mac", strings.ToLower(*d.MAC), n.Name+"/"+d.Name)
			for _, p := range d.Prefixes() {
				field := ".address"
				if p.Addr().Is6() {
					field = ".address6"
				}
				addresses.claim(path+field, p.Addr().String(), n.Name)
			}
		}
	}
	r.gatewaysFree(addresses.holder)
}

// gatewaysFree records gateways that are some node's address.
func (r *rules) gatewaysFree(holder map[string]string) {
	for _, n := range r.Config.Nodes {
		for _, d := range n.Devices() {
			for field, g := range map[string]*string{".gateway": d.Gateway, ".gateway6": d.Gateway6} {
				if g == nil {
					continue
				}
				node, taken := holder[*g]
				if !taken {
					continue
				}
				at := check.Key(scope.NodePath(n)+".networks", d.Name)
				if r.Wrong(at + field) {
					continue
				}
				if address, err := spec.ParseAddr(*g); err == nil && likelyGateway(d.Network, address) {
					r.addressOfGateway(node, address)
				} else if other, _ := r.Config.Node(node); node != n.Name && !hasGateway(other, *g) {
					r.Addf(at+field, "%s is the address of node %s: a gateway must be another machine", *g, node)
				}
			}
		}
	}
}
