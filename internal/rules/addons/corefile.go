// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package addons

import (
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// corefile checks that CoreDNS can read its configuration, listens where the cluster's DNS service leads, and does not ask itself.
func (r *rules) corefile(at, text string) {
	depth := 0
	listens, servers := false, 0
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if depth == 0 && len(words) > 0 && words[0] != "}" && strings.HasSuffix(strings.TrimSpace(line), "{") {
			blocks, serves := corefileServers(words)
			servers, listens = servers+blocks, listens || serves
		}
		if depth > 0 && len(words) > 2 && words[0] == "forward" {
			r.forwards(at, words[2:])
		}
		depth += strings.Count(line, "{") - strings.Count(line, "}")
	}
	switch {
	case depth != 0:
		r.Addf(at, "has braces that do not match, with which CoreDNS does not start: close each { with a }")
	case servers > 0 && !listens:
		r.Addf(at, "listens at another port than 53, to which the cluster's DNS service leads: write .:53")
	}
}

// corefileServers returns how many servers a line opens, and reports whether one of them listens at port 53.
func corefileServers(words []string) (servers int, listens bool) {
	for _, zone := range words {
		if zone == "{" || strings.HasPrefix(zone, "(") {
			continue
		}
		servers++
		_, port, has := strings.Cut(zone, ":")
		listens = listens || !has || strings.TrimSuffix(port, "{") == "53" || strings.Contains(zone, "://")
	}

	return servers, listens
}

// forwards checks that queries are not sent back to the cluster's own DNS.
func (r *rules) forwards(at string, to []string) {
	for _, server := range to {
		a, err := spec.ParseAddr(strings.TrimPrefix(server, "dns://"))
		if err != nil {
			continue
		}
		for _, p := range scope.Prefixes(r.Config.Cluster.ServiceSubnets) {
			if p.Contains(a) {
				r.Addf(at, "forwards to %s, an address of the services, and would ask itself: forward to /etc/resolv.conf or to a server outside", a)
			}
		}
	}
}
