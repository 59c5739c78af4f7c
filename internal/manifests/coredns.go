// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package manifests

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// coreDNS replaces Talos's CoreDNS where the stack asks for more than Talos can be told. Names,
// labels and the service's address are Talos's, so that everything finds it.
func (in Input) coreDNS(context.Context) ([]part, error) {
	dns := in.Config.Manifests.CoreDNS
	if dns == nil || !machineconfig.CoreDNSReplaced(*dns) {
		return nil, nil
	}
	addresses, err := dnsAddresses(in.Config.Cluster.ServiceSubnets)
	if err != nil {
		return nil, check.At("manifests.coreDns", err)
	}
	corefile := cmp.Or(string(spec.Value(dns.Corefile)), defaultCorefile(spec.Value(in.Config.Cluster.DNSDomain)))
	labels := object{"k8s-app": "kube-dns", "kubernetes.io/name": "CoreDNS"}
	meta := func(name string) object {
		return object{"name": name, "namespace": ciliumNamespace, "labels": labels}
	}

	contents := mustYAML(object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta("coredns")}) +
		coreDNSAccess() +
		mustYAML(object{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta("coredns"), "data": object{"Corefile": corefile},
		}) +
		coreDNSDeployment(meta("coredns"), cmp.Or(spec.Value(dns.Image), versions.CoreDNSImage), spec.Value(dns.Replicas)) +
		coreDNSService(meta("kube-dns"), addresses)

	return []part{{name: "coredns", contents: contents}}, nil
}

// defaultCorefile returns what Talos writes.
func defaultCorefile(domain string) string {
	return strings.ReplaceAll(`.:53 {
    errors
    health {
        lameduck 5s
    }
    ready
    log . {
        class error
    }
    prometheus :9153
    kubernetes DOMAIN in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }
    forward . /etc/resolv.conf {
        max_concurrent 1000
    }
    cache 30 {
        disable success DOMAIN
        disable denial DOMAIN
    }
    loop
    reload
    loadbalance
}
`, "DOMAIN", domain)
}

// dnsAddresses returns the tenth address of each service network, where kubelets send pods for names.
func dnsAddresses(subnets []string) ([]string, error) {
	var addresses []string
	for _, subnet := range subnets {
		prefix, err := spec.ParseNetwork(subnet)
		if err != nil {
			return nil, fmt.Errorf("service subnet: %w", err)
		}
		address := prefix.Masked().Addr()
		for range 10 {
			address = address.Next()
		}
		if !prefix.Contains(address) {
			return nil, fmt.Errorf("service subnet %s has no tenth address", subnet)
		}
		addresses = append(addresses, address.String())
	}

	return addresses, nil
}

// coreDNSAccess lets CoreDNS see services and pods.
func coreDNSAccess() string {
	read := func(group string, resources ...string) object {
		return object{"apiGroups": list{group}, "resources": texts(resources), "verbs": list{"list", "watch"}}
	}

	return mustYAML(object{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": object{"name": "system:coredns"},
		"rules": list{
			read("", "endpoints", "services", "pods", "namespaces"),
			object{"apiGroups": list{""}, "resources": list{"nodes"}, "verbs": list{"get"}},
			read("discovery.k8s.io", "endpointslices"),
		},
	}) + mustYAML(object{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": object{"name": "system:coredns"},
		"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:coredns"},
		"subjects": list{object{"kind": "ServiceAccount", "name": "coredns", "namespace": ciliumNamespace}},
	})
}

// coreDNSDeployment runs CoreDNS, spread over nodes.
func coreDNSDeployment(meta object, image string, replicas int) string {
	selector := object{"k8s-app": "kube-dns"}
	probe := func(path string, port int) object {
		return object{"httpGet": object{"path": path, "port": port, "scheme": "HTTP"}, "initialDelaySeconds": 60, "timeoutSeconds": 5}
	}

	return mustYAML(object{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta,
		"spec": object{
			"replicas": replicas,
			"strategy": object{"type": "RollingUpdate", "rollingUpdate": object{"maxUnavailable": 1}},
			"selector": object{"matchLabels": selector},
			"template": object{"metadata": object{"labels": selector}, "spec": object{
				"serviceAccountName": "coredns",
				"priorityClassName":  "system-cluster-critical",
				"dnsPolicy":          "Default",
				"tolerations": list{
					object{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"},
					object{"key": "node.cloudprovider.kubernetes.io/uninitialized", "operator": "Exists", "effect": "NoSchedule"},
				},
				"affinity": object{"podAntiAffinity": object{"preferredDuringSchedulingIgnoredDuringExecution": list{object{
					"weight":          100,
					"podAffinityTerm": object{"labelSelector": object{"matchLabels": selector}, "topologyKey": "kubernetes.io/hostname"},
				}}}},
				"containers": list{object{
					"name": "coredns", "image": image, "imagePullPolicy": "IfNotPresent",
					"args":      list{"-conf", "/etc/coredns/Corefile"},
					"resources": object{"limits": object{"memory": "170Mi"}, "requests": object{"cpu": "100m", "memory": "70Mi"}},
					"env":       list{object{"name": "GOMEMLIMIT", "value": "161MiB"}},
					"ports": list{
						object{"name": "dns", "containerPort": 53, "protocol": "UDP"},
						object{"name": "dns-tcp", "containerPort": 53, "protocol": "TCP"},
						object{"name": "metrics", "containerPort": 9153, "protocol": "TCP"},
					},
					"livenessProbe":  probe("/health", 8080),
					"readinessProbe": object{"httpGet": object{"path": "/ready", "port": 8181, "scheme": "HTTP"}},
					"securityContext": object{
						"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
						"capabilities": object{"add": list{"NET_BIND_SERVICE"}, "drop": list{"all"}},
					},
					"volumeMounts": list{object{"name": "config-volume", "mountPath": "/etc/coredns", "readOnly": true}},
				}},
				"volumes": list{object{"name": "config-volume", "configMap": object{
					"name": "coredns", "items": list{object{"key": "Corefile", "path": "Corefile"}},
				}}},
			}},
		},
	})
}

// coreDNSService returns where pods ask for names.
func coreDNSService(meta object, addresses []string) string {
	service := object{
		"selector": object{"k8s-app": "kube-dns"},
		"ports": list{
			object{"name": "dns", "port": 53, "protocol": "UDP", "targetPort": 53},
			object{"name": "dns-tcp", "port": 53, "protocol": "TCP", "targetPort": 53},
			object{"name": "metrics", "port": 9153, "protocol": "TCP", "targetPort": 9153},
		},
	}
	if len(addresses) > 0 {
		service["clusterIP"] = addresses[0]
		service["clusterIPs"] = texts(addresses)
		service["ipFamilyPolicy"] = "SingleStack"
		if len(addresses) > 1 {
			service["ipFamilyPolicy"] = "RequireDualStack"
		}
	}

	return mustYAML(object{"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": service})
}
