// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

const flagRule = "is no flag: write it without dashes in front, such as event-ttl"

// kubernetes checks the Kubernetes side.
func (r *rules) kubernetes() {
	k := r.Config.Kubernetes
	r.flags()
	r.ports()
	r.apiServerFlags()
	r.kubeletFlags()
	r.etcdFlags()
	r.elections()
	r.proxyFlags()
	r.component("kubernetes.apiServer", k.APIServer.Component)
	r.component("kubernetes.controllerManager", *k.ControllerManager)
	r.component("kubernetes.scheduler", *k.Scheduler)
	r.apiServer(*k.APIServer)
	r.kubelet(*k.Kubelet)
	r.selected("kubernetes.etcd.advertisedSubnets", k.Etcd.AdvertisedSubnets)
	if k.Etcd.Backup != nil {
		r.etcdBackup("kubernetes.etcd.backup", *k.Etcd.Backup)
	}

	replaces := r.Config.UsesCilium() && spec.Value(r.Config.CNI.Cilium.KubeProxyReplacement)
	switch enabled := *k.Proxy.Enabled; {
	case enabled && replaces:
		r.Addf(
			"kubernetes.proxy.enabled",
			"is true while Cilium replaces kube-proxy: set it to false, or cni.cilium.kubeProxyReplacement to false")
	case !enabled && r.Config.UsesCilium() && !replaces:
		r.Addf(
			"kubernetes.proxy.enabled",
			"is false while Cilium does not replace kube-proxy, so that no service would work: set it to true")
	case !enabled && *r.Config.CNI.Name == "flannel":
		r.Addf(
			"kubernetes.proxy.enabled",
			"is false and flannel does not replace kube-proxy, so that no service would work: set it to true, or cni.name to cilium")
	}
}

func (r *rules) component(path string, c spec.Component) {
	scope.KeysMatch(r.Scope, path+".env", c.Env, scope.VariableForm.MatchString, "is no name of an environment variable")
}

func (r *rules) apiServer(a spec.APIServer) {
	if a.OIDC != nil {
		if u, ok := scope.WebURL(a.OIDC.IssuerURL, "https"); !ok || u.RawQuery != "" || u.Fragment != "" {
			r.Addf(
				"kubernetes.apiServer.oidc.issuerUrl",
				"%q is not an https:// URL: the API server accepts no other issuer", a.OIDC.IssuerURL)
		}
	}
	if a.AuditPolicy != nil {
		r.auditPolicy("kubernetes.apiServer.auditPolicy", *a.AuditPolicy)
	}
	for _, name := range scope.SortedKeys(a.AdmissionPlugins) {
		r.admission(name, a.AdmissionPlugins[name])
	}
	if _, ok := a.AdmissionPlugins["PodSecurity"]; ok && spec.Value(a.DisablePodSecurity) {
		r.Addf(
			"kubernetes.apiServer.disablePodSecurity",
			"is true while admissionPlugins configures PodSecurity: remove one of them")
	}
}

func (r *rules) kubelet(k spec.Kubelet) {
	if k.ExtraConfig != nil {
		r.kubeletConfiguration("kubernetes.kubelet.extraConfig", *k.ExtraConfig)
	}
	for _, destination := range scope.SortedKeys(k.ExtraMounts) {
		at := check.Key("kubernetes.kubelet.extraMounts", destination)
		if !path.IsAbs(destination) || path.Clean(destination) != destination {
			r.Addf(at, "%q is no path on a node: write it from / on", destination)
		}
		if !slices.Contains(writable, strings.SplitN(destination+"/", "/", 3)[1]) && !r.Wrong(at) {
			r.Addf(at, "is no directory that Talos has or can make, so that the kubelet would not start: "+
				"write one below /var, such as /var/mnt%s", destination)
		}
		if slices.Contains(kubeletMounts, destination) {
			r.Addf(at, "is a path that Talos gives the kubelet itself: choose another, or one below it")
		}
		r.options(at, k.ExtraMounts[destination])
	}
	r.Addresses("kubernetes.kubelet.clusterDns", k.ClusterDNS)
	if k.CertificateApprover != nil && !spec.Value(k.RotateServerCertificates) {
		r.Addf("kubernetes.kubelet.certificateApprover",
			"is for rotateServerCertificates, which is off: set it to true, or remove the approver")
	}
	r.selected("kubernetes.kubelet.nodeIpSubnets", k.NodeIPSubnets)
}

// inAny reports whether an address is in one of the networks.
func inAny(a netip.Addr, networks []netip.Prefix) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(a) })
}

// writable are the directories of Talos's root, which is read-only, below which there is something to mount.
var writable = []string{"var", "opt", "etc", "usr", "run", "tmp", "system", "sys", "dev", "proc", "lib", "bin", "sbin", "boot"}

// kubeletMounts are what Talos mounts into the kubelet's container.
var kubeletMounts = []string{
	"/dev", "/sys", "/proc", "/run", "/var/run", "/etc/kubernetes", "/etc/cni", "/etc/os-release", "/lib/modules", "/usr/libexec/kubernetes",
	"/var/lib/containerd", "/var/lib/kubelet", "/var/log/containers", "/var/log/pods",
}

// selected checks a list of networks that may be excluded with an exclamation mark in front, and
// that some address of every node is in one of them.
func (r *rules) selected(path string, texts []string) {
	var in, out []netip.Prefix
	for i, text := range texts {
		network, excluded := strings.CutPrefix(text, "!")
		p, ok := r.CIDR(check.Index(path, i), network)
		switch {
		case ok && excluded:
			out = append(out, p)
		case ok:
			in = append(in, p)
		}
	}
	if len(in)+len(out) == 0 || r.Wrong(path) {
		return
	}
	var without []string
	for _, n := range r.Config.Nodes {
		if path == "kubernetes.etcd.advertisedSubnets" && !n.IsControlPlane() {
			continue
		}
		left := func(a netip.Addr) bool { return (len(in) == 0 || inAny(a, in)) && !inAny(a, out) }
		if len(n.Addresses()) > 0 && !slices.ContainsFunc(n.Addresses(), left) {
			without = append(without, n.Name)
		}
	}
	if len(without) > 0 {
		r.Addf(path, "leaves no address of node %s: add the network of the nodes' addresses", scope.AndMore(without))
	}
}
