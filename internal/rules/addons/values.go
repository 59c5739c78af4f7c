// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package addons

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// need describes a value of a chart without which a setting does not work.
type need struct {
	key string
	// fits reports whether a value is one that works.
	fits func(value any) bool
	// why says what does not work otherwise, and what to do.
	why string
}

// one returns a test for a single value.
func one(want any) func(any) bool {
	return func(v any) bool { return fmt.Sprint(v) == fmt.Sprint(want) }
}

// needs records values with which something does not work.
func (r *rules) needs(path string, text *spec.Text, all []need) {
	var values map[string]any
	if text == nil || yaml.Unmarshal([]byte(*text), &values) != nil {
		return // said elsewhere
	}
	for _, n := range all {
		given, ok := valueAt(values, strings.Split(n.key, "."))
		if !ok || given == nil || n.fits(given) {
			continue
		}
		shown := fmt.Sprintf("is %v, and ", given)
		if _, tree := given.(map[string]any); tree {
			shown = ""
		} else if _, list := given.([]any); list {
			shown = ""
		}
		r.Addf(check.Join(path, n.key), "%s%s", shown, n.why)
	}
}

// amongst returns a test for one of some values; none is the chart's own.
func amongst(choices ...string) func(any) bool {
	return func(v any) bool { return v == "" || slices.Contains(choices, fmt.Sprint(v)) }
}

// nativeRouting checks that Cilium is told which addresses are routed natively, without which its agents do not start.
func (r *rules) nativeRouting(path string, text spec.Text) {
	var values map[string]any
	if yaml.Unmarshal([]byte(text), &values) != nil || values["routingMode"] != "native" {
		return
	}
	agent, _ := valueAt(values, []string{"ipMasqAgent", "enabled"})
	for family, four := range map[string]bool{"ipv4": true, "ipv6": false} {
		masquerades, given := values["enable"+strings.ToUpper(family[:2])+family[2:]+"Masquerade"]
		key := family + "NativeRoutingCIDR"
		if values[key] != nil || given && masquerades == false || agent == true || !r.speaks(four)(true) {
			continue
		}
		r.Addf(check.Join(path, "routingMode"),
			"is native, and Cilium does not start without knowing what is routed so: add %s with the pods' network", key)
	}
}

// positive reports whether a value is a number above zero.
func positive(v any) bool {
	n, ok := v.(int)

	return !ok || n > 0
}

// ciliumNeeds returns values without which Cilium does not run on Talos, or not with the rest of the stack.
func (r *rules) ciliumNeeds(c spec.Cilium) []need {
	const talosSays = "Talos has it otherwise, so that Cilium would not start: remove it"
	all := []need{
		{"ipam.mode", one("kubernetes"), "nodes get the pods' addresses from Kubernetes, out of cluster.podSubnets: remove it"},
		{"cgroup.autoMount.enabled", one(false), talosSays},
		{"cgroup.hostRoot", one("/sys/fs/cgroup"), talosSays},
		{"securityContext.capabilities.ciliumAgent", func(v any) bool {
			list, _ := v.([]any)

			return !slices.Contains(list, any("SYS_MODULE"))
		}, "holds SYS_MODULE, which Talos gives to no container: remove it"},
		{"operator.replicas", positive, "without an operator no pod gets an address: write 1 or more"},
		{"cluster.id", func(v any) bool {
			n, ok := v.(int)

			return !ok || n >= 0 && n <= 255
		}, "Cilium takes numbers from 0 to 255: choose one of them"},
		{"routingMode", amongst("tunnel", "native"), "Cilium has tunnel and native: write one of them"},
		{"tunnelProtocol", amongst("vxlan", "geneve"), "Cilium has vxlan and geneve: write one of them"},
		{"encryption.type", amongst("wireguard", "ipsec", "ztunnel"), "Cilium has wireguard and ipsec: write one of them"},
		{"loadBalancer.mode", amongst("snat", "dsr", "hybrid"), "Cilium has snat, dsr and hybrid: write one of them"},
		{"loadBalancer.algorithm", amongst("random", "maglev"), "Cilium has random and maglev: write one of them"},
		{"bpf.datapathMode", amongst("veth", "netkit", "netkit-l2", "auto"), "Cilium has veth, netkit and netkit-l2: write one of them"},
		{"ipv4NativeRoutingCIDR", r.holdsPods(true),
			"that does not hold cluster.podSubnets, so that pods would not reach each other: write their network"},
		{"ipv6NativeRoutingCIDR", r.holdsPods(false),
			"that does not hold cluster.podSubnets, so that pods would not reach each other: write their network"},
		{"k8s.requireIPv4PodCIDR", r.speaks(true), "cluster.podSubnets have no IPv4, so that Cilium would wait for ever: remove it"},
		{"k8s.requireIPv6PodCIDR", r.speaks(false), "cluster.podSubnets have no IPv6, so that Cilium would wait for ever: remove it"},
	}
	if !*c.Hubble {
		for _, key := range []string{"hubble.relay.enabled", "hubble.ui.enabled"} {
			all = append(all, need{key, one(false), "it needs Hubble, which cni.cilium.hubble leaves off: set that to true, or remove it"})
		}
	}

	return append(all, r.apiServerNeeds(c)...)
}

// apiServerNeeds returns the values by which Cilium finds the API servers while it provides the services itself.
func (r *rules) apiServerNeeds(c spec.Cilium) []need {
	var values map[string]any
	_ = yaml.Unmarshal([]byte(spec.Value(c.Chart.Values)), &values) // what cannot be read is said elsewhere
	host := fmt.Sprint(values["k8sServiceHost"])
	prism := r.Config.Talos.KubePrism
	own := map[string]bool{"auto": true}
	for _, n := range r.Config.ControlPlanes() {
		own[*n.Hostname] = true
		for _, a := range n.Addresses() {
			own[a.String()] = true
		}
	}
	if vip := r.VIP(); vip.IsValid() {
		own[vip.String()] = true
	}
	local := []string{"localhost", "127.0.0.1"}

	return []need{
		{"k8sServiceHost", func(v any) bool {
			host := fmt.Sprint(v)
			if slices.Contains(local, host) {
				return *prism.Enabled
			}
			_, err := spec.ParseAddr(host)

			return err != nil || own[host] || r.outsideNodes(host)
		}, "no API server answers there: remove it, and Cilium asks KubePrism or cluster.endpoint"},
		{"k8sServicePort", func(v any) bool {
			port := fmt.Sprint(v)
			if slices.Contains(local, host) && *prism.Enabled && len(r.Config.Nodes) > len(r.Config.ControlPlanes()) {
				return port == fmt.Sprint(*prism.Port) // workers run no API server
			}

			return port == fmt.Sprint(*prism.Port) || port == "6443" || !*prism.Enabled || r.endpointPort(port)
		}, fmt.Sprintf("KubePrism listens at %d, and API servers at 6443 of control planes: remove it", *prism.Port)},
	}
}

// outsideNodes reports whether an address may be a load balancer's: it is in no network of the nodes, or it is the endpoint.
func (r *rules) outsideNodes(host string) bool {
	a, err := spec.ParseAddr(host)
	if err != nil || strings.Contains(r.Config.Endpoint(), host) {
		return true
	}
	for _, p := range r.NodeNetworks() {
		if p.Contains(a) {
			return false
		}
	}

	return true
}

func (r *rules) endpointPort(port string) bool {
	return strings.HasSuffix(r.Config.Endpoint(), ":"+port)
}

// holdsPods returns a test of networks: each of a family must hold the pods' of that family.
func (r *rules) holdsPods(four bool) func(any) bool {
	return func(v any) bool {
		p, err := spec.ParseNetwork(fmt.Sprint(v))
		if err != nil || p.Addr().Is4() != four || r.Wrong("cluster.podSubnets") {
			return err != nil
		}
		for _, pods := range scope.Prefixes(r.Config.Cluster.PodSubnets) {
			if pods.Addr().Is4() == four && (!p.Contains(pods.Addr()) || p.Bits() > pods.Bits()) {
				return false
			}
		}

		return true
	}
}

// speaks returns a test of a switch that asks for a family, which pods must have.
func (r *rules) speaks(four bool) func(any) bool {
	return func(v any) bool {
		if v != true {
			return true
		}

		return slices.ContainsFunc(scope.Prefixes(r.Config.Cluster.PodSubnets), func(p netip.Prefix) bool { return p.Addr().Is4() == four })
	}
}

// fluxControllers are the controllers of Flux's chart, by the name that values have for them.
var fluxControllers = map[string]string{
	"sourceController": "source-controller", "kustomizeController": "kustomize-controller", "helmController": "helm-controller",
	"notificationController": "notification-controller", "imageAutomationController": "image-automation-controller",
	"imageReflectionController": "image-reflector-controller",
}

// fluxNeeds returns values of Flux's chart without which nothing follows git, or that say otherwise than settings.
func (r *rules) fluxNeeds(g spec.GitOps) []need {
	all := []need{
		{"installCRDs", one(true), "without the definitions the repository and the path cannot be told to Flux: remove it"},
		{"clusterDomain", one(*r.Config.Cluster.DNSDomain), "cluster.dnsDomain is " + *r.Config.Cluster.DNSDomain + ": remove it"},
	}
	for _, value := range scope.SortedKeys(fluxControllers) {
		name := fluxControllers[value]
		switch {
		case name == "source-controller" || name == "kustomize-controller":
			all = append(all, need{value + ".create", one(true), "without " + name + " nothing follows git: remove it"})
		case len(g.Components) > 0:
			all = append(all, need{value + ".create", one(slices.Contains(g.Components, name)),
				"gitops.components says otherwise: write it there, and remove it here"})
		}
		if g.Registry != nil {
			all = append(all, need{value + ".image", func(v any) bool { return strings.HasPrefix(fmt.Sprint(v), *g.Registry) },
				"gitops.registry is " + *g.Registry + ": remove it"})
		}
	}

	return all
}

// argoNeeds returns values of Argo CD's chart without which nothing follows git.
func (r *rules) argoNeeds(g spec.GitOps) []need {
	const applications = "without it no Application is followed: remove it"

	return []need{
		{"crds.install", one(true), "without the definitions the Application cannot be told to Argo CD: remove it"},
		{"controller.replicas", positive, applications},
		{"repoServer.replicas", positive, applications},
		{"namespaceOverride", one(*g.Namespace), "gitops.namespace is " + *g.Namespace + ": write it there, and remove it here"},
		{"createClusterRoles", one(true), "without its roles Argo CD may apply nothing outside its namespace: remove it"},
	}
}

// operatorNeeds returns values of the Flux operator's chart without which nothing follows git.
func operatorNeeds() []need {
	return []need{
		{"installCRDs", one(true), "without the definitions the instance of Flux cannot be told to the operator: remove it"},
		{"replicas", positive, "without the operator nothing installs Flux: remove it"},
	}
}

// gitopsNeeds checks the chart's values against what GitOps does with the chart.
func (r *rules) gitopsNeeds(g spec.GitOps) {
	all := r.argoNeeds(g)
	if *g.Provider == "flux" {
		all = r.fluxNeeds(g)
		if *g.Method == "operator" {
			all = operatorNeeds()
		}
	}
	r.needs("gitops.chart.values", g.Chart.Values, all)
}
