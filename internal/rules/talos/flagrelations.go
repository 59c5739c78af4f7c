// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"slices"
	"strconv"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// nodePorts are the ports that services may ask for on every node, where no flag says otherwise.
const nodePorts = "30000-32767"

// takenPorts are ports that something has on every node, or on control planes.
var takenPorts = map[int]string{
	6443: "the API server", 50000: "the Talos API", 50001: "trustd", 2379: "etcd", 2380: "etcd", 10250: "the kubelet",
	10248: "the kubelet's health",
	10249: "kube-proxy's metrics", 10256: "kube-proxy's health", 10257: "the controller manager", 10259: "the scheduler", 51820: "KubeSpan",
}

// portRange reads "30000-32767", or "30000+2767".
func portRange(text string) (first, last int, ok bool) {
	low, high, ranged := strings.Cut(text, "-")
	if plus, size, sum := strings.Cut(text, "+"); sum {
		a, errA := strconv.Atoi(plus)
		n, errN := strconv.Atoi(size)

		return a, a + n, errA == nil && errN == nil && a > 0 && a+n <= 65535
	}
	first, errLow := strconv.Atoi(low)
	last, errHigh := strconv.Atoi(high)

	return first, last, ranged && errLow == nil && errHigh == nil && first > 0 && first <= last && last <= 65535
}

// ports checks the ports of services and of KubePrism against those that something has.
func (r *rules) ports() {
	const flag = "kubernetes.apiServer.extraArgs.service-node-port-range"
	text, given := r.Config.Kubernetes.APIServer.ExtraArgs["service-node-port-range"]
	if !given {
		text = nodePorts
	}
	first, last, ok := portRange(text)
	if !ok {
		r.Addf(flag, "%q is no range of ports such as %s", text, nodePorts)

		return
	}
	for _, port := range slices.Sorted(func(yield func(int) bool) {
		for p := range takenPorts {
			if !yield(p) {
				return
			}
		}
	}) {
		if port >= first && port <= last {
			r.Addf(flag, "%s holds %d, the port of %s: choose a range apart from it, such as %s", text, port, takenPorts[port], nodePorts)

			break
		}
	}
	prism := r.Config.Talos.KubePrism
	port := *prism.Port
	if said := r.Said.Talos.KubePrism; !*prism.Enabled && said != nil && said.Port != nil {
		r.Addf("talos.kubePrism.port", "is written while talos.kubePrism.enabled is false: set that to true, or remove the port")
	}
	if *prism.Enabled && port >= first && port <= last && !r.Wrong("talos.kubePrism.port", flag) {
		r.Addf("talos.kubePrism.port", "%d is one of the ports %s that services get: choose one apart from them, such as 7445", port, text)
	}
}

// admissionPlugins are those that API servers of every release know.
var admissionPlugins = []string{
	"AlwaysAdmit", "AlwaysDeny", "AlwaysPullImages", "CertificateApproval", "CertificateSigning", "CertificateSubjectRestriction",
	"ClusterTrustBundleAttest", "DefaultIngressClass", "DefaultStorageClass", "DefaultTolerationSeconds", "DenyServiceExternalIPs",
	"EventRateLimit", "ExtendedResourceToleration", "ImagePolicyWebhook", "LimitPodHardAntiAffinityTopology", "LimitRanger",
	"MutatingAdmissionPolicy", "MutatingAdmissionWebhook", "NamespaceAutoProvision", "NamespaceExists", "NamespaceLifecycle",
	"NodeRestriction",
	"OwnerReferencesPermissionEnforcement", "PersistentVolumeClaimResize", "PersistentVolumeLabel", "PodNodeSelector", "PodSecurity",
	"PodTolerationRestriction", "PodTopologyLabels", "Priority", "ResourceQuota", "RuntimeClass", "ServiceAccount",
	"StorageObjectInUseProtection", "TaintNodesByCondition", "ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook",
	"NodeDeclaredFeatureValidator",
	"JobValidation", "PodGroupWorkloadExists",
}

// needed are admission plugins without which nodes and control planes do not work, or not safely.
var needed = []string{"NodeRestriction", "NamespaceLifecycle", "ServiceAccount"}

// apiServerFlags checks flags of the API server against each other and against what settings say.
func (r *rules) apiServerFlags() {
	const at = "kubernetes.apiServer.extraArgs"
	flags := r.Config.Kubernetes.APIServer.ExtraArgs
	r.admissionFlags(at, flags)
	for _, c := range components() {
		r.gates(c.path, r.given()[c.path]["feature-gates"])
	}
	r.authorizationMode(check.Key(at, "authorization-mode"), flags)
	if bind, err := spec.ParseAddr(flags["bind-address"]); err == nil && bind.IsLoopback() {
		r.Addf(check.Key(at, "bind-address"), "is %s, at which no node reaches the API server: remove it", bind)
	}
	if address, err := spec.ParseAddr(flags["advertise-address"]); err == nil {
		r.Addf(check.Key(at, "advertise-address"), "is %s for every control plane, and each has its own address: remove it", address)
	}
	r.oidcFlags(at, flags)
}

// admissionFlags checks which admission plugins are turned on and off.
func (r *rules) admissionFlags(at string, flags map[string]string) {
	for _, flag := range []string{"enable-admission-plugins", "disable-admission-plugins"} {
		for _, name := range strings.FieldsFunc(flags[flag], func(c rune) bool { return c == ',' }) {
			switch {
			case !slices.Contains(admissionPlugins, name):
				r.Addf(check.Key(at, flag), "%s", scope.NotOneOf(name, admissionPlugins))
			case flag[0] == 'd' && slices.Contains(strings.Split(flags["enable-admission-plugins"], ","), name):
				r.Addf(check.Key(at, flag),
					"turns off %s, which enable-admission-plugins turns on, and the API server would not start: keep one of them", name)
			case flag[0] == 'd' && slices.Contains(needed, name):
				r.Addf(check.Key(at, flag), "turns off %s, without which the cluster does not work safely: take it out", name)
			}
		}
	}
}

// authorizationMode checks that nodes and Talos may do what they have to.
func (r *rules) authorizationMode(at string, flags map[string]string) {
	text, given := flags["authorization-mode"]
	if !given {
		return
	}
	modes := strings.Split(text, ",")
	for _, mode := range []string{"Node", "RBAC"} {
		if !slices.Contains(modes, mode) {
			r.Addf(at, "lacks %s, without which nodes and Talos itself may do nothing: write Node,RBAC", mode)

			return
		}
	}
}

// oidcFlags checks the flags of OpenID Connect against each other and against the settings of the same.
func (r *rules) oidcFlags(at string, flags map[string]string) {
	oidc := r.Config.Kubernetes.APIServer.OIDC
	for _, flag := range scope.SortedKeys(flags) {
		if strings.HasPrefix(flag, "oidc-") && oidc != nil {
			r.Addf(check.Key(at, flag), "is what kubernetes.apiServer.oidc says: write it there, and remove the flag")
		}
	}
	issuer, client := flags["oidc-issuer-url"], flags["oidc-client-id"]
	if (issuer == "") != (client == "") && oidc == nil {
		missing := "oidc-client-id"
		if issuer == "" {
			missing = "oidc-issuer-url"
		}
		r.Addf(check.Key(at, missing), "is required beside the other: add it, or write kubernetes.apiServer.oidc instead")
	}
}

// gates checks a list of feature gates, "A=true,B=false".
func (r *rules) gates(path, list string) {
	for _, entry := range strings.FieldsFunc(list, func(c rune) bool { return c == ',' }) {
		name, value, ok := strings.Cut(strings.TrimSpace(entry), "=")
		message := unknownFlag("featureGates", name)
		if _, err := strconv.ParseBool(value); message == "" && (!ok || err != nil) {
			message = "is written with another value than true or false"
		}
		if message != "" {
			r.Addf(check.Key(path, "feature-gates"), "%s %s", name, strings.Replace(message, "a flag that", "a feature gate that", 1))
		}
	}
}

// kubeletFlags checks flags that settings of nodes stand for.
func (r *rules) kubeletFlags() {
	flags := r.Config.Kubernetes.Kubelet.ExtraArgs
	for flag, setting := range map[string]string{
		"node-labels": "the nodes' labels", "register-with-taints": "the nodes' taints", "provider-id": "Talos",
	} {
		if _, given := flags[flag]; given {
			r.Addf(check.Key("kubernetes.kubelet.extraArgs", flag), "is for one node, and every node would get it: write it as %s", setting)
		}
	}
}

// etcdFlags checks the times of etcd against each other: a follower must miss several heartbeats before it stands for election.
func (r *rules) etcdFlags() {
	flags := r.Config.Kubernetes.Etcd.ExtraArgs
	number := func(flag string, fallback int) int {
		if n, err := strconv.Atoi(flags[flag]); err == nil {
			return n
		}

		return fallback
	}
	beat, election := number("heartbeat-interval", 100), number("election-timeout", 1000)
	at := "kubernetes.etcd.extraArgs.election-timeout"
	if _, given := flags["election-timeout"]; !given {
		at = "kubernetes.etcd.extraArgs.heartbeat-interval"
	}
	switch {
	case r.Wrong(at):
	case election < 5*beat && strings.HasSuffix(at, "interval"):
		r.Addf(at, "%d ms is more than a fifth of election-timeout, %d ms, with which etcd does not start: write %d or less",
			beat, election, election/5)
	case election < 5*beat:
		r.Addf(at, "%d ms is less than five times heartbeat-interval, %d ms, with which etcd does not start: write %d or more",
			election, beat, 5*beat)
	case election > 50000:
		r.Addf(at, "%d ms is more than etcd takes, 50000: lower it", election)
	}
}

// proxyFlags checks that settings of kube-proxy have an effect.
func (r *rules) proxyFlags() {
	said := r.Said.Kubernetes.Proxy
	if said == nil || *r.Config.Kubernetes.Proxy.Enabled {
		return
	}
	for name, given := range map[string]bool{"mode": said.Mode != nil, "extraArgs": len(said.ExtraArgs) > 0} {
		if given && !r.Wrong("kubernetes.proxy") {
			r.Addf("kubernetes.proxy."+name, "is for kube-proxy, which does not run here: remove it, or set kubernetes.proxy.enabled to true")
		}
	}
}

// mountOptions are options of a bind mount; some exclude each other.
var mountOptions = [][]string{
	{"rw", "ro"}, {"rshared", "rslave", "rprivate", "shared", "slave", "private", "runbindable", "unbindable"}, {"bind", "rbind"},
	{"exec", "noexec"}, {"suid", "nosuid"}, {"dev", "nodev"}, {"atime", "noatime", "relatime", "strictatime"},
	{"diratime", "nodiratime"}, {"sync", "async"},
}

// options checks the options of a mount.
func (r *rules) options(at string, options []string) {
	chosen := map[int]string{}
	var known []string
	for _, group := range mountOptions {
		known = append(known, group...)
	}
	for i, option := range options {
		if !slices.Contains(known, option) {
			r.Addf(check.Index(at, i), "%s", scope.NotOneOf(option, known))

			continue
		}
		group := slices.IndexFunc(mountOptions, func(g []string) bool { return slices.Contains(g, option) })
		if other, twice := chosen[group]; twice {
			r.Addf(check.Index(at, i), "%s does not go with %s: keep one of them", option, other)
		}
		chosen[group] = option
	}
}
