// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package networks

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// cluster checks what all nodes share, network ranges apart.
func (r *rules) cluster() {
	c := r.Config.Cluster
	switch {
	case c.Name == nil:
		r.Addf("cluster.name", "is required")
	case !scope.LabelForm.MatchString(*c.Name):
		r.Addf(
			"cluster.name",
			"%q is no name: use up to 63 lower-case letters, digits and dashes, beginning and ending with a letter or digit", *c.Name)
	}
	if c.Endpoint != nil && !isEndpoint(*c.Endpoint) {
		r.Addf("cluster.endpoint", "%q is not the URL of a Kubernetes API: write https://<host>:6443", *c.Endpoint)
	}
	r.names(c)
	r.secrets(c)
	r.controlPlanes()
}

// secrets checks what a cluster that was made elsewhere brings, and the authorities it accepts.
func (r *rules) secrets(c spec.Cluster) {
	if c.SecretsBundle != nil && !isBundle(c.SecretsBundle.Reveal()) {
		r.Addf("cluster.secretsBundle", "is not a secrets bundle: give the YAML that `talosctl gen secrets` writes")
	}
	for path, accepted := range map[string][]spec.Text{
		"cluster.acceptedCAs.talos": c.AcceptedTalosCAs(), "cluster.acceptedCAs.kubernetes": c.AcceptedKubernetesCAs(),
	} {
		for i := range accepted {
			r.Certificate(check.Index(path, i), &accepted[i])
		}
	}
	if spec.Value(c.Adopted) && c.SecretsBundle == nil {
		r.Addf("cluster.secretsBundle", "is required for an adopted cluster: give the secrets it was made with")
	}
}

// isEndpoint reports whether a text is the URL of a server, without anything behind its port.
func isEndpoint(text string) bool {
	u, ok := scope.WebURL(text, "https")

	return ok && strings.Trim(u.Path, "/") == "" && u.RawQuery == "" && u.Fragment == "" && !strings.HasSuffix(u.Host, ":") &&
		scope.IsHostname(strings.ToLower(u.Hostname()))
}

// names checks the names and addresses that nodes and certificates carry.
func (r *rules) names(c spec.Cluster) {
	if _, err := spec.ParseAddr(*c.DNSDomain); err == nil || !scope.DomainForm.MatchString(*c.DNSDomain) {
		r.Addf("cluster.dnsDomain", "%q is not a domain such as cluster.local", *c.DNSDomain)
	}
	r.Addresses("cluster.nameservers", c.Nameservers)
	r.Each("cluster.timeServers", c.TimeServers, isTimeSource, "is neither a host name nor an IP address")
	for i, text := range c.TimeServers {
		if first := c.TimeServers[0]; clockDevice.MatchString(text) != clockDevice.MatchString(first) {
			r.Addf(check.Index("cluster.timeServers", i), "%s does not go with %s: Talos asks servers or reads a clock: keep one kind", text, first)
		}
	}
	r.Each("cluster.searchDomains", c.SearchDomains, scope.DomainForm.MatchString, "is not a domain")
	r.Each("cluster.certSANs", c.CertSANs, isCertificateName, "is neither a host name nor an IP address")
	r.Each("cluster.tags", c.Tags, scope.TagForm.MatchString, scope.TagRule)
	for path, texts := range map[string][]string{
		"cluster.timeServers": c.TimeServers, "cluster.searchDomains": c.SearchDomains, "cluster.tags": c.Tags, "cluster.certSANs": c.CertSANs,
	} {
		r.Twice(path, texts)
	}
	for _, address := range scope.SortedKeys(c.ExtraHosts) {
		path := check.Key("cluster.extraHosts", address)
		if _, err := spec.ParseAddr(address); err != nil {
			r.Addf(path, "%q is not an IP address: write the address as the key and its names as the list", address)
		}
		r.Each(path, c.ExtraHosts[address], scope.DomainForm.MatchString, "is not a host name")
		if len(c.ExtraHosts[address]) == 0 {
			r.Addf(path, "has no names: write at least one, or remove it")
		}
	}
}

// clockDevice matches a clock that the hypervisor gives its machines, which Talos reads instead of asking a server.
var clockDevice = regexp.MustCompile(`^/dev/ptp([0-9]+|_kvm)$`)

// isTimeSource reports whether Talos can take the time from there.
func isTimeSource(text string) bool { return scope.IsHostname(text) || clockDevice.MatchString(text) }

// isCertificateName reports whether a certificate can have the name: of a machine, or of all in a domain.
func isCertificateName(text string) bool { return scope.IsHostname(strings.TrimPrefix(text, "*.")) }

// isBundle reports whether text is a Talos secrets bundle, without looking at the secrets.
func isBundle(text string) bool {
	var bundle struct {
		Cluster, Secrets, TrustdInfo, Certs map[string]any
	}

	return yaml.Unmarshal([]byte(text), &bundle) == nil &&
		bundle.Cluster != nil && bundle.Secrets != nil && bundle.TrustdInfo != nil && bundle.Certs != nil
}

// badRole reports whether something is wrong with a node's role.
func (r *rules) badRole() bool {
	return slices.ContainsFunc(r.Config.Nodes, func(n spec.NamedNode) bool { return r.Wrong(scope.NodePath(n) + ".role") })
}

// controlPlanes checks how many there are and what they may run.
func (r *rules) controlPlanes() {
	n := len(r.Config.ControlPlanes())
	switch {
	case n == 0 && r.badRole():
		// The one that is misspelt may be a control plane.
	case n == 0:
		r.Addf("nodes", "there is no control plane: give at least one node the role controlplane")
	case n%2 == 0:
		r.Addf(
			"nodes",
			"%d control planes bear no more failures than %d: etcd needs an odd number, so remove one or add one", n, n-1)
	}
	if !r.Config.SchedulingOnControlPlanes() && n > 0 && len(r.Config.Workers()) == 0 {
		r.Addf(
			"cluster.allowSchedulingOnControlPlanes",
			"is false and there are no workers, so that nothing could run: set it to true, or add a worker")
	}
}

// vip checks the address that control planes share.
func (r *rules) vip() {
	c := r.Config.Cluster
	if c.VIP == nil {
		if c.VIPNetwork != nil {
			r.Addf("cluster.vipNetwork", "needs a vip: set cluster.vip, or remove it")
		}

		return
	}
	vip, err := spec.ParseAddr(*c.VIP)
	if err != nil {
		r.Addf("cluster.vip", "%s", err)

		return
	}
	r.usable("cluster.vip", netip.PrefixFrom(vip, vip.BitLen()))
	for _, n := range r.Config.Nodes {
		for _, d := range n.Devices() {
			path := check.Key(scope.NodePath(n)+".networks", d.Name)
			for _, p := range d.Prefixes() {
				if p.Addr() == vip {
					r.Addf("cluster.vip", "%s is the address of node %s: choose a free address", vip, n.Name)
				}
			}
			for field, g := range map[string]*string{".gateway": d.Gateway, ".gateway6": d.Gateway6} {
				switch {
				case g == nil || *g != vip.String():
				case likelyGateway(d.Network, vip):
					r.Addf("cluster.vip", "%s is the gateway of network %s: choose a free address", vip, d.Name)
				default:
					r.Addf(path+field, "%s is the cluster's VIP: write the router's address", vip)
				}
			}
		}
	}
	r.vipNetwork(vip)
}

// vipNetwork checks that every control plane has the network of the VIP.
func (r *rules) vipNetwork(vip netip.Addr) {
	named := r.Config.Cluster.VIPNetwork
	for _, n := range r.Config.ControlPlanes() {
		if named != nil {
			if _, ok := n.Networks[*named]; !ok {
				r.Addf("cluster.vipNetwork", "control plane %s has no network %q%s", n.Name, *named, nearestNetwork(n, *named))

				return
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
		if !holds && len(networks) > 0 && !r.Wrong(scope.NodePath(n)+".networks") && !r.List.Has("cluster.vip") {
			r.Addf(
				"cluster.vip", "%s is outside the control planes' network %s: choose a free address inside it", vip, networks[0])
		}
	}
}
