// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
)

// component describes a program whose flags a stack file can set.
type component struct {
	// path of the flags.
	path string
	// denied are flags that Talos keeps to itself: it starts nothing when one is given.
	denied []string
	// settings are flags that a setting stands for, by flag.
	settings map[string]string
}

// components returns the programs of the control plane and the nodes, with what Talos refuses in each
// (siderolabs/talos: controllers/k8s/control_plane_final.go, kubelet_spec.go, services/etcd.go).
func components() []component {
	return []component{
		{
			path: "kubernetes.apiServer.extraArgs",
			denied: []string{
				"etcd-servers", "client-ca-file", "requestheader-client-ca-file", "proxy-client-cert-file", "proxy-client-key-file",
				"encryption-provider-config", "etcd-cafile", "etcd-certfile", "etcd-keyfile", "kubelet-client-certificate",
				"kubelet-client-key", "service-account-key-file", "service-account-signing-key-file", "tls-cert-file",
				"tls-private-key-file", "authorization-config", "secure-port", "enable-bootstrap-token-auth", "allow-privileged",
			},
			settings: map[string]string{
				"service-cluster-ip-range": "cluster.serviceSubnets", "audit-policy-file": "kubernetes.apiServer.auditPolicy",
				"admission-control-config-file": "kubernetes.apiServer.admissionPlugins",
			},
		},
		{
			path: "kubernetes.controllerManager.extraArgs",
			denied: []string{
				"kubeconfig", "cluster-signing-cert-file", "cluster-signing-key-file", "authentication-kubeconfig", "authorization-kubeconfig",
				"root-ca-file", "service-account-private-key-file", "allocate-node-cidrs", "use-service-account-credentials",
			},
			settings: map[string]string{"cluster-cidr": "cluster.podSubnets", "service-cluster-ip-range": "cluster.serviceSubnets"},
		},
		{
			path:   "kubernetes.scheduler.extraArgs",
			denied: []string{"kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig", "config"},
		},
		{
			path:     "kubernetes.proxy.extraArgs",
			denied:   []string{"kubeconfig", "config", "hostname-override"},
			settings: map[string]string{"proxy-mode": "kubernetes.proxy.mode", "cluster-cidr": "cluster.podSubnets"},
		},
		{
			path: "kubernetes.etcd.extraArgs",
			denied: []string{
				"name", "auto-tls", "peer-auto-tls", "data-dir", "listen-peer-urls", "listen-client-urls", "listen-client-http-urls",
				"client-cert-auth", "cert-file", "key-file", "trusted-ca-file", "peer-client-cert-auth", "peer-cert-file", "peer-key-file",
				"peer-trusted-ca-file", "watch-progress-notify-interval", "tls-min-version", "initial-cluster", "initial-cluster-state",
				"initial-cluster-token", "force-new-cluster",
			},
			settings: map[string]string{
				"advertise-client-urls": "kubernetes.etcd.advertisedSubnets", "initial-advertise-peer-urls": "kubernetes.etcd.advertisedSubnets",
			},
		},
		{
			path: "kubernetes.kubelet.extraArgs",
			denied: []string{
				"bootstrap-kubeconfig", "kubeconfig", "container-runtime", "container-runtime-endpoint", "config", "cert-dir",
			},
			settings: map[string]string{
				"hostname-override": "nodes.<name>.hostname", "cluster-dns": "kubernetes.kubelet.clusterDns",
				"cluster-domain": "cluster.dnsDomain", "rotate-server-certificates": "kubernetes.kubelet.rotateServerCertificates",
				"node-ip": "kubernetes.kubelet.nodeIpSubnets",
			},
		},
	}
}

// flags checks the flags of every program.
func (r *rules) flags() {
	given := r.given()
	for _, c := range components() {
		for _, flag := range scope.SortedKeys(given[c.path]) {
			at := check.Key(c.path, flag)
			setting, has := c.settings[flag]
			switch {
			case !scope.FlagForm.MatchString(flag):
				r.Addf(at, "%q %s", flag, flagRule)
			case slices.Contains(c.denied, flag):
				r.Addf(at, "is a flag that Talos sets itself, and it starts nothing beside it: remove it")
			case has:
				r.Addf(at, "is what %s says: write it there, and remove the flag", setting)
			default:
				if message := FlagProblem(strings.Split(c.path, ".")[1], flag, given[c.path][flag]); message != "" {
					r.Addf(at, "%s", message)
				}
			}
		}
	}
}

// given returns the flags of every program, by path.
func (r *rules) given() map[string]map[string]string {
	k := r.Config.Kubernetes

	return map[string]map[string]string{
		"kubernetes.apiServer.extraArgs": k.APIServer.ExtraArgs, "kubernetes.controllerManager.extraArgs": k.ControllerManager.ExtraArgs,
		"kubernetes.scheduler.extraArgs": k.Scheduler.ExtraArgs, "kubernetes.proxy.extraArgs": k.Proxy.ExtraArgs,
		"kubernetes.etcd.extraArgs": k.Etcd.ExtraArgs, "kubernetes.kubelet.extraArgs": k.Kubelet.ExtraArgs,
	}
}
