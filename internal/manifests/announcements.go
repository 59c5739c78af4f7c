// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package manifests

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// announcements returns Cilium's address pools, and how it announces their addresses.
func announcements(cfg spec.Config, settings spec.Cilium) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings.Pools)) {
		b.WriteString(pool(cfg, name, settings.Pools[name]))
	}
	if settings.L2 != nil {
		b.WriteString(l2Policy(*settings.L2))
	}
	if settings.BGP != nil {
		b.WriteString(bgp(versions.CiliumAPIVersion(*CiliumChart(cfg).Version), *settings.BGP))
	}

	return b.String()
}

// pool returns an address pool.
func pool(cfg spec.Config, name string, p spec.CiliumPool) string {
	block := object{}
	if p.CIDR != nil {
		block["cidr"] = *p.CIDR
	} else {
		block["start"] = spec.Value(p.Start)
		block["stop"] = cmp.Or(spec.Value(p.Stop), spec.Value(p.Start))
	}

	return mustYAML(object{
		"apiVersion": versions.CiliumAPIVersion(*CiliumChart(cfg).Version), "kind": "CiliumLoadBalancerIPPool",
		"metadata": object{"name": name}, "spec": object{"blocks": list{block}},
	})
}

// l2Policy announces addresses on layer 2.
func l2Policy(l2 spec.CiliumL2) string {
	policy := object{
		"loadBalancerIPs": spec.Value(l2.LoadBalancerIPs),
		"externalIPs":     spec.Value(l2.ExternalIPs),
	}
	if len(l2.Interfaces) > 0 {
		policy["interfaces"] = texts(l2.Interfaces)
	}
	if spec.Value(l2.ExcludeControlPlanes) {
		policy["nodeSelector"] = object{"matchExpressions": list{
			object{"key": "node-role.kubernetes.io/control-plane", "operator": "DoesNotExist"},
		}}
	}

	return mustYAML(object{
		"apiVersion": "cilium.io/v2alpha1", "kind": "CiliumL2AnnouncementPolicy",
		"metadata": object{"name": "default"}, "spec": policy,
	})
}

// bgp announces services' addresses to the peers, from every node.
func bgp(version string, settings spec.CiliumBGP) string {
	const advertised = "talos-proxmox"
	var (
		b     strings.Builder
		peers list
	)
	for _, name := range slices.Sorted(maps.Keys(settings.Peers)) {
		peer := settings.Peers[name]
		peers = append(peers, object{
			"name": name, "peerAddress": peer.Address, "peerASN": peer.ASN, "peerConfigRef": object{"name": name},
		})
		config := object{
			"families": list{
				object{"afi": "ipv4", "safi": "unicast", "advertisements": object{"matchLabels": object{"advertise": advertised}}},
			},
			"gracefulRestart": object{"enabled": true},
		}
		if peer.Password != nil {
			config["authSecretRef"] = "bgp-" + name
			b.WriteString(mustYAML(object{
				"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
				"metadata":   object{"name": "bgp-" + name, "namespace": ciliumNamespace},
				"stringData": object{"password": peer.Password.Reveal()},
			}))
		}
		b.WriteString(mustYAML(object{
			"apiVersion": version, "kind": "CiliumBGPPeerConfig", "metadata": object{"name": name}, "spec": config,
		}))
	}
	b.WriteString(mustYAML(object{
		"apiVersion": version, "kind": "CiliumBGPAdvertisement",
		"metadata": object{"name": advertised, "labels": object{"advertise": advertised}},
		"spec": object{"advertisements": list{object{
			"advertisementType": "Service",
			"service":           object{"addresses": list{"LoadBalancerIP"}},
			// An expression that is always true selects every service; an empty selector selects none.
			"selector": object{"matchExpressions": list{
				object{"key": "talos-proxmox.dev/no-announcement", "operator": "DoesNotExist"},
			}},
		}}},
	}))
	b.WriteString(mustYAML(object{
		"apiVersion": version, "kind": "CiliumBGPClusterConfig",
		"metadata": object{"name": advertised},
		"spec": object{
			"nodeSelector": object{"matchLabels": object{"kubernetes.io/os": "linux"}},
			"bgpInstances": list{object{"name": "default", "localASN": settings.LocalASN, "peers": peers}},
		},
	}))

	return b.String()
}

// defaultDeny refuses what no policy allows, except names, and except in the namespaces that the
// cluster itself lives from.
func defaultDeny(cfg spec.Config) string {
	exempt := list{ciliumNamespace}
	if spec.Value(cfg.GitOps.Provider) != "none" {
		exempt = append(exempt, spec.Value(cfg.GitOps.Namespace))
	}

	gateways := ""
	if spec.Value(cfg.CNI.Cilium).GatewayAPI != nil {
		gateways = allowGateways()
	}

	return gateways + mustYAML(object{
		"apiVersion": "cilium.io/v2", "kind": "CiliumClusterwideNetworkPolicy",
		"metadata": object{"name": "default-deny"},
		"spec": object{
			"description": "Refuses what no policy allows, except asking for names.",
			"endpointSelector": object{"matchExpressions": list{object{
				"key": "k8s:io.kubernetes.pod.namespace", "operator": "NotIn", "values": exempt,
			}}},
			"ingress": list{object{}},
			"egress": list{object{
				"toEndpoints": list{object{"matchLabels": object{
					"k8s:io.kubernetes.pod.namespace": ciliumNamespace, "k8s-app": "kube-dns",
				}}},
				"toPorts": list{object{"ports": list{
					object{"port": "53", "protocol": "UDP"}, object{"port": "53", "protocol": "TCP"},
				}}},
			}},
		},
	})
}

// allowGateways lets clients in to the cluster's Gateways, and what comes through them out to pods and to the Kubernetes
// API: a Gateway has no namespace that could be exempt. Pods still choose with policies of their own what they take from one.
func allowGateways() string {
	return mustYAML(object{
		"apiVersion": "cilium.io/v2", "kind": "CiliumClusterwideNetworkPolicy",
		"metadata": object{"name": "allow-gateways"},
		"spec": object{
			"description":      "Allows clients to reach Gateways, and Gateways to reach the cluster.",
			"endpointSelector": object{"matchExpressions": list{object{"key": "reserved:ingress", "operator": "Exists"}}},
			"ingress":          list{object{"fromEntities": list{"world", "cluster"}}},
			"egress":           list{object{"toEntities": list{"cluster"}}},
		},
	})
}

// texts returns a list in an object.
func texts(values []string) list {
	all := list{}
	for _, v := range values {
		all = append(all, v)
	}

	return all
}
