// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rules

import (
	"net/netip"

	"gopkg.in/yaml.v3"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// cluster checks what all nodes share, network ranges apart.
func (r *rules) cluster() {
	c := r.c.Cluster
	switch {
	case c.Name == nil:
		r.l.Addf("cluster.name", "is required")
	case !labelForm.MatchString(*c.Name):
		r.l.Addf(
			"cluster.name",
			"%q is no name: use up to 63 lower-case letters, digits and dashes, beginning and ending with a letter or digit", *c.Name)
	}
	if c.Endpoint != nil {
		if u, ok := webURL(*c.Endpoint, "https"); !ok || (u.Path != "" && u.Path != "/") {
			r.l.Addf("cluster.endpoint", "%q is not the URL of a Kubernetes API: write https://<host>:6443", *c.Endpoint)
		}
	}
	r.names(c)
	if c.SecretsBundle != nil && !isBundle(c.SecretsBundle.Reveal()) {
		r.l.Addf("cluster.secretsBundle", "is not a secrets bundle: give the YAML that `talosctl gen secrets` writes")
	}
	if spec.Or(c.Adopted, false) && c.SecretsBundle == nil {
		r.l.Addf("cluster.secretsBundle", "is required for an adopted cluster: give the secrets it was made with")
	}
	r.controlPlanes()
}

// names checks the names and addresses that nodes and certificates carry.
func (r *rules) names(c spec.Cluster) {
	if !domainForm.MatchString(*c.DNSDomain) {
		r.l.Addf("cluster.dnsDomain", "%q is not a domain such as cluster.local", *c.DNSDomain)
	}
	r.addresses("cluster.nameservers", c.Nameservers)
	r.each("cluster.timeServers", c.TimeServers, hostname, "is neither a host name nor an IP address")
	r.each("cluster.searchDomains", c.SearchDomains, domainForm.MatchString, "is not a domain")
	r.each("cluster.certSANs", c.CertSANs, hostname, "is neither a host name nor an IP address")
	r.each("cluster.tags", c.Tags, tagForm.MatchString, tagRule)
	for _, address := range sortedKeys(c.ExtraHosts) {
		path := check.Key("cluster.extraHosts", address)
		if _, err := netip.ParseAddr(address); err != nil {
			r.l.Addf(path, "%q is not an IP address: write the address as the key and its names as the list", address)
		}
		r.each(path, c.ExtraHosts[address], domainForm.MatchString, "is not a host name")
	}
}

const tagRule = "is no Proxmox tag: use lower-case letters, digits, and _ - + . after the first"

// isBundle says whether text is a Talos secrets bundle, without looking at the secrets.
func isBundle(text string) bool {
	var bundle struct {
		Cluster, Secrets, TrustdInfo, Certs map[string]any
	}

	return yaml.Unmarshal([]byte(text), &bundle) == nil &&
		bundle.Cluster != nil && bundle.Secrets != nil && bundle.TrustdInfo != nil && bundle.Certs != nil
}

// controlPlanes checks how many there are and what they may run.
func (r *rules) controlPlanes() {
	n := len(r.c.ControlPlanes())
	switch {
	case n == 0:
		r.l.Addf("nodes", "there is no control plane: give at least one node the role controlplane")
	case n%2 == 0:
		r.l.Addf(
			"nodes",
			"%d control planes bear no more failures than %d: etcd needs an odd number, so remove one or add one", n, n-1)
	}
	if !r.c.SchedulingOnControlPlanes() && n > 0 && len(r.c.Workers()) == 0 {
		r.l.Addf(
			"cluster.allowSchedulingOnControlPlanes",
			"is false and there are no workers, so that nothing could run: set it to true, or add a worker")
	}
}

// vip checks the address that control planes share.
func (r *rules) vip() {
	c := r.c.Cluster
	if c.VIP == nil {
		if c.VIPNetwork != nil {
			r.l.Addf("cluster.vipNetwork", "needs a vip: set cluster.vip, or remove it")
		}

		return
	}
	vip, err := netip.ParseAddr(*c.VIP)
	if err != nil {
		r.l.Addf("cluster.vip", "%q is not an IP address", *c.VIP)

		return
	}
	for _, n := range r.c.Nodes {
		for _, d := range n.Devices() {
			path := check.Key(nodePath(n)+".networks", d.Name)
			for _, p := range d.Prefixes() {
				if p.Addr() == vip {
					r.l.Addf("cluster.vip", "%s is the address of node %s: choose a free address", vip, n.Name)
				}
			}
			for _, g := range []*string{d.Gateway, d.Gateway6} {
				if g != nil && *g == vip.String() {
					r.l.Addf(path+".gateway", "%s is the cluster's VIP: choose another VIP", vip)
				}
			}
		}
	}
	r.vipNetwork(vip)
}

// vipNetwork checks that every control plane has the network of the VIP.
func (r *rules) vipNetwork(vip netip.Addr) {
	named := r.c.Cluster.VIPNetwork
	for _, n := range r.c.ControlPlanes() {
		if named != nil {
			if _, ok := n.Networks[*named]; !ok {
				r.l.Addf("cluster.vipNetwork", "control plane %s has no network %q", n.Name, *named)

				continue
			}
		}
		holds := false
		var networks []netip.Prefix
		for _, d := range n.Devices() {
			if named != nil && d.Name != *named {
				continue
			}
			for _, p := range d.Prefixes() {
				if p.Contains(vip) {
					holds = true
					r.usable("cluster.vip", netip.PrefixFrom(vip, p.Bits()))
				}
				networks = append(networks, p.Masked())
			}
		}
		if !holds && len(networks) > 0 {
			r.l.Addf(
				"cluster.vip", "%s is outside the control planes' network %s: choose a free address inside it", vip, networks[0])
		}
	}
}
