// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package addons

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// ciliumValues checks that the chart's values do not say otherwise than settings of the stack.
func (r *rules) ciliumValues(c spec.Cilium) {
	if c.Chart.Values == nil {
		return
	}
	has := func(four bool) bool {
		for _, p := range scope.Prefixes(r.Config.Cluster.PodSubnets) {
			if p.Addr().Is4() == four {
				return true
			}
		}

		return false
	}
	policy := "default"
	if spec.Value(c.DefaultDeny) {
		policy = "always"
	}
	all := []said{
		{"kubeProxyReplacement", *c.KubeProxyReplacement, "cni.cilium.kubeProxyReplacement"},
		{"hubble.enabled", *c.Hubble, "cni.cilium.hubble"},
		{"gatewayAPI.enabled", c.GatewayAPI != nil, "cni.cilium.gatewayApi"},
		{"policyEnforcementMode", policy, "cni.cilium.defaultDeny"},
		{"ipv4.enabled", has(true), "cluster.podSubnets"},
		{"ipv6.enabled", has(false), "cluster.podSubnets"},
	}
	// Without a setting, who announces may say so in objects of their own.
	if c.L2 != nil {
		all = append(all, said{"l2announcements.enabled", true, "cni.cilium.l2"})
	}
	if c.BGP != nil {
		all = append(all, said{"bgpControlPlane.enabled", true, "cni.cilium.bgp"})
	}
	r.contradicted("cni.cilium.chart.values", *c.Chart.Values, all)
	r.nativeRouting("cni.cilium.chart.values", *c.Chart.Values)
	r.needs("cni.cilium.chart.values", c.Chart.Values, r.ciliumNeeds(c))
}

// said holds what a setting says of a chart's value.
type said struct {
	key     string
	value   any
	setting string
}

// contradicted records values that say otherwise than a setting.
func (r *rules) contradicted(path string, text spec.Text, all []said) {
	var values map[string]any
	if yaml.Unmarshal([]byte(text), &values) != nil {
		return // said elsewhere
	}
	for _, s := range all {
		given, ok := valueAt(values, strings.Split(s.key, "."))
		if !ok || given == nil || fmt.Sprint(given) == fmt.Sprint(s.value) {
			continue
		}
		r.Addf(check.Join(path, s.key), "is %v, and %s makes it %v: write it in the setting, and remove it here", given, s.setting, s.value)
	}
}

func valueAt(values map[string]any, path []string) (any, bool) {
	value, ok := values[path[0]]
	if !ok || len(path) == 1 {
		return value, ok
	}
	below, _ := value.(map[string]any)

	return valueAt(below, path[1:])
}

// coreDNS checks that CoreDNS answers for the cluster's domain.
func (r *rules) coreDNS(d *spec.CoreDNS) {
	if d == nil || d.Corefile == nil {
		return
	}
	const at = "manifests.coreDns.corefile"
	domain := *r.Config.Cluster.DNSDomain
	zones, found := []string{}, false
	for line := range strings.Lines(string(*d.Corefile)) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(strings.NewReplacer("{", " { ", "}", " } ").Replace(line))
		at := slices.Index(words, "kubernetes")
		if at < 0 {
			continue
		}
		found = true
		for _, word := range words[at+1:] {
			if word == "{" || word == "}" {
				break
			}
			zones = append(zones, word)
		}
	}
	r.corefile(at, string(*d.Corefile))
	switch {
	case r.Wrong(at):
	case !found:
		r.Addf(at, "has no kubernetes plugin, so that services would have no names: add kubernetes %s in-addr.arpa ip6.arpa", domain)
	case len(zones) > 0:
		for _, zone := range zones {
			if strings.TrimSuffix(zone, ".") == domain || zone == "." {
				return
			}
		}
		r.Addf(at, "answers for %s, and cluster.dnsDomain is %s: write that as the zone of the kubernetes plugin", zones[0], domain)
	}
}
