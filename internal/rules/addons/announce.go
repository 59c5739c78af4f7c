// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package addons

import (
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// announced checks that announcements announce something.
func (r *rules) announced(c spec.Cilium) {
	if c.L2 != nil && !*c.L2.LoadBalancerIPs && !*c.L2.ExternalIPs {
		r.Addf("cni.cilium.l2", "announces neither loadBalancerIPs nor externalIPs: set one of them to true, or remove l2")
	}
}

// lastASN is the highest number of an autonomous system that a router takes; the very last is reserved.
const lastASN = 4294967294

func (r *rules) asNumber(path string, number int) {
	switch {
	case number > lastASN:
		r.Addf(path, "%d is no number of an autonomous system: the most is %d; 64512 to 65534 are for private use", number, lastASN)
	case number == 23456 || number == 65535:
		r.Addf(path, "%d is reserved: choose another number, such as one from 64512 to 65534", number)
	}
}

// peer checks a BGP neighbour: a router that is no machine of the cluster and no other peer.
func (r *rules) peer(at, name string, b spec.CiliumBGP) {
	peer := b.Peers[name]
	r.objectName(at, name)
	r.asNumber(at+".asn", peer.ASN)
	at += ".address"
	a, err := spec.ParseAddr(peer.Address)
	if err != nil {
		r.Addf(at, "%s", err)

		return
	}
	if what := r.noPeer(a); what != "" {
		r.Addf(at, "%s is %s: write the router's address", a, what)
	}
	for _, other := range scope.SortedKeys(b.Peers) {
		if o, err := spec.ParseAddr(b.Peers[other].Address); err == nil && other < name && o == a {
			r.Addf(at, "%s is the address of peer %s too: name each router once", a, other)
		}
	}
}

// noPeer returns what an address is instead of a router's; empty where it may be one.
func (r *rules) noPeer(a netip.Addr) string {
	what := ""
	switch {
	case a.IsLoopback() || a.IsUnspecified() || a.IsMulticast() || a.IsLinkLocalUnicast():
		what = "no router that nodes reach"
	case a == r.VIP():
		what = "the cluster's VIP"
	case !r.Wrong("cni.cilium.pools") && inPools(r.Config.CNI.Cilium.Pools, a):
		what = "in a pool of LoadBalancer addresses"
	}
	if network, edge := r.NoMachine(a); edge {
		what = "the network's own or broadcast address in " + network.String()
	}
	for _, n := range r.Config.Nodes {
		if slices.Contains(n.Addresses(), a) {
			what = "the address of node " + n.Name
		}
	}
	if of := r.clusterNetwork(a); of != "" {
		what = "in the network of " + of
	}

	return what
}

// clusterNetwork returns of what the network is that has an address, "pods" or "services"; empty where it is neither.
func (r *rules) clusterNetwork(a netip.Addr) string {
	for of, texts := range map[string][]string{"pods": r.Config.Cluster.PodSubnets, "services": r.Config.Cluster.ServiceSubnets} {
		for _, p := range scope.Prefixes(texts) {
			if p.Contains(a) && !r.Wrong("cluster."+strings.TrimSuffix(of, "s")+"Subnets") {
				return of
			}
		}
	}

	return ""
}

// frontDoor checks the Gateway before the API servers: something must give it an address, and another name than theirs.
func (r *rules) frontDoor(at string, c spec.Cilium, a spec.GatewayAPIServer) {
	if len(c.Pools) == 0 && c.L2 == nil && c.BGP == nil {
		r.Addf(at, "gets no address, since nothing announces one: add cni.cilium.pools with l2 or bgp")
	}
	if _, err := spec.ParseAddr(a.Hostname); err == nil {
		return
	}
	if u, err := url.Parse(r.Config.Endpoint()); err == nil && u.Hostname() == a.Hostname && !r.Wrong("cluster.endpoint") {
		r.Addf(at+".hostname", "%s is the name of cluster.endpoint, by which nodes ask the control planes themselves: choose another", a.Hostname)
	}
}

// definitions checks where the definitions of Gateway API are.
func (r *rules) definitions(at string, places []string) {
	if places != nil && len(places) == 0 {
		r.Addf(at, "is empty: name the definitions, or remove it for those of the release that fits the chart")
	}
	r.Twice(at, places)
	for i, place := range places {
		here := check.Index(at, i)
		if strings.Contains(place, ":/") {
			if _, ok := scope.WebURL(place, "https", "http"); !ok {
				r.Addf(here, "%q is no URL of definitions: write https://… or a path in the project", place)
			}

			continue
		}
		r.File(here, &place)
		if !r.Wrong(here) {
			r.ReadFile(here, place)
		}
	}
}

// chartFolder checks that a chart in the project is there: a folder, or an archive.
func (r *rules) chartFolder(at string, c spec.Chart) {
	if r.Files == nil || r.Wrong(at) {
		return
	}
	repository, name := *c.Repository, spec.Value(c.Name)
	for _, place := range []string{
		path.Join(repository, "Chart.yaml"), path.Join(repository, name, "Chart.yaml"), repository,
		path.Join(repository, name+"-"+spec.Value(c.Version)+".tgz"),
	} {
		if _, err := r.Files(place); err == nil {
			return
		}
	}
	r.Addf(at, "there is no chart at %q: write the folder that holds Chart.yaml, or https://… or oci://…", repository)
}
