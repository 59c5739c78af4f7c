// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// talosRoles are what pods may ask of the Talos API.
var talosRoles = []string{"os:admin", "os:etcd:backup", "os:impersonator", "os:operator", "os:reader"}

// talos checks the operating system's side.
func (r *rules) talos() {
	t := r.Config.Talos
	r.Sysctls("talos.sysctls", t.Sysctls)
	scope.KeysMatch(r.Scope, "talos.kernelModules", t.KernelModules, scope.ModuleForm.MatchString, "is no name of a kernel module")
	for _, name := range scope.SortedKeys(t.Files) {
		r.machineFile(name, t.Files[name])
	}
	r.filesApart(t.Files)
	r.sysfs(t.Sysfs)
	r.hostDNS()
	for _, name := range scope.SortedKeys(t.TrustedRoots) {
		r.BlockName(check.Key("talos.trustedRoots", name), name)
		if !scope.IsCertificate(t.TrustedRoots[name]) {
			r.Addf(check.Key("talos.trustedRoots", name),
				"is not a CA certificate that can be read whole: give it in PEM form, from -----BEGIN CERTIFICATE----- to its end")
		}
	}
	r.logDestinations(t.LogDestinations)
	if t.APIAccess != nil {
		r.podAccess(*t.APIAccess)
	}
	if port := *t.KubePrism.Port; *t.KubePrism.Enabled && takenPorts[port] != "" {
		r.Addf("talos.kubePrism.port", "%d is the port of %s: choose another, such as 7445", port, takenPorts[port])
	}
	if d := t.DiskEncryption; d != nil {
		if d.State == nil && d.Ephemeral == nil {
			r.Addf("talos.diskEncryption", "names no partition: add state or ephemeral, or remove it")
		}
		r.encryption("talos.diskEncryption.state", t.DiskEncryption.State)
		r.encryption("talos.diskEncryption.ephemeral", t.DiskEncryption.Ephemeral)
	}
	r.Patches("talos.patches.all", t.Patches.All)
	r.Patches("talos.patches.controlPlane", t.Patches.ControlPlane)
	r.Patches("talos.patches.worker", t.Patches.Worker)
}

// logDestinations checks where nodes send their logs.
func (r *rules) logDestinations(destinations []string) {
	r.Twice("talos.logDestinations", destinations)
	for i, destination := range destinations {
		if u, ok := scope.WebURL(destination, "tcp", "udp"); !ok || u.Port() == "" || strings.Trim(u.Path, "/") != "" {
			r.Addf(check.Index("talos.logDestinations", i),
				"%q is no destination: write tcp://<host>:<port> or udp://<host>:<port>", destination)
		}
	}
}

// podAccess checks which pods may ask the Talos API for what.
func (r *rules) podAccess(a spec.APIAccess) {
	for i, role := range a.Roles {
		if !slices.Contains(talosRoles, role) {
			r.Addf(check.Index("talos.apiAccess.roles", i), "%s", scope.NotOneOf(role, talosRoles))
		}
	}
	r.Each("talos.apiAccess.namespaces", a.Namespaces, scope.LabelForm.MatchString, "is no name of a namespace")
	if !r.Wrong("talos.apiAccess") {
		r.apiAccess(a)
	}
}

func (r *rules) machineFile(name string, f spec.MachineFile) {
	at := check.Key("talos.files", name)
	if !path.IsAbs(name) || path.Clean(name) != name {
		r.Addf(at, "%q is no path on a node: write it from / on", name)
	}
	if spec.Value(f.Op) == "create" && !scope.CreatableFile(name) && !r.Wrong(at) {
		r.Addf(at, "cannot be created: Talos creates files below /var/ only, and %s", scope.RuntimeSettings)
	}
	for _, own := range []string{"/var/lib/etcd", "/var/lib/kubelet/pki", "/var/lib/containerd", "/var/log", "/var/run"} {
		if strings.HasPrefix(name+"/", own+"/") {
			r.Addf(at, "is in %s, where Talos, etcd or the container runtime write: choose another path", own)
		}
	}
	if strings.HasPrefix(name, "/etc/cri/conf.d/") {
		r.containerd(at+".content", f.Content)
	}
	if n, err := strconv.ParseUint(*f.Permissions, 0, 32); err != nil || n > 0o7777 || !strings.HasPrefix(*f.Permissions, "0") {
		r.Addf(at+".permissions", "%q are no permissions: write them in octal, such as \"0o644\"", *f.Permissions)
	}
}

// encryption checks where a key comes from.
func (r *rules) encryption(path string, e *spec.Encryption) {
	if e == nil {
		return
	}
	kind := *e.Key
	switch {
	case kind == "kms" && e.KMSEndpoint == nil:
		r.Addf(path+".kmsEndpoint", "is required with key kms")
	case kind != "kms" && e.KMSEndpoint != nil:
		r.Addf(path+".kmsEndpoint", "is for key kms, and the key is %s: remove one of them", kind)
	case e.KMSEndpoint != nil:
		r.kmsEndpoint(path+".kmsEndpoint", *e.KMSEndpoint)
	}
	switch {
	case kind == "static" && e.Passphrase == nil:
		r.Addf(path+".passphrase", "is required with key static")
	case kind != "static" && e.Passphrase != nil:
		r.Addf(path+".passphrase", "is for key static, and the key is %s: remove one of them", kind)
	}
	if kind == "tpm" {
		r.everyTPM(path + ".key")
	}
}

// kmsEndpoint checks where keys are asked for.
func (r *rules) kmsEndpoint(at, endpoint string) {
	switch u, ok := scope.WebURL(endpoint, "https", "http", "grpc"); {
	case !ok || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		r.Addf(at, "%q is no address such as https://kms.example.com:4050", endpoint)
	case scope.Loopback(u.Hostname()):
		r.Addf(at, "%s is each node itself, which has no keys before it has asked for them: name another machine", u.Hostname())
	}
}

// everyTPM checks that every node has the TPM to which a key is sealed.
func (r *rules) everyTPM(path string) {
	var without []string
	for _, n := range r.Config.Nodes {
		if n.TPM == nil {
			without = append(without, n.Name)
		}
	}
	if len(without) > 0 {
		r.Addf(path, "is tpm, and node %s none: add tpm to the nodes, such as defaults.all.tpm: {}", scope.Have(without))
	}
}

// registries checks mirrors and credentials.
func (r *rules) registries() {
	for _, name := range scope.SortedKeys(r.Config.Talos.Registries) {
		reg := r.Config.Talos.Registries[name]
		at := check.Key("talos.registries", name)
		r.registryName(at, name, reg)
		if asked, known := registryNames[name]; known {
			r.Addf(at, "is a name that containerd never asks by: write %s", asked)
		}
		if _, ok := scope.WebURL("https://"+name, "https"); name != "*" && (!ok || strings.Contains(name, "/")) {
			r.Addf(at, "%q is no registry: write its host such as docker.io, or *", name)
		}
		for i, endpoint := range reg.Endpoints {
			r.endpointPath(check.Index(at+".endpoints", i), endpoint, spec.Value(reg.OverridePath))
		}
		if reg.Endpoints == nil && (spec.Value(reg.OverridePath) || spec.Value(reg.SkipFallback)) {
			r.Addf(at+".endpoints", "is required where overridePath or skipFallback is set: name the mirrors")
		}
		r.Twice(at+".endpoints", reg.Endpoints)
		if reg.Endpoints != nil && len(reg.Endpoints) == 0 {
			r.Addf(at+".endpoints", "is empty: name the mirrors, or remove it")
		}
		r.registryAuth(at, reg)
	}
}

// endpointPath checks a mirror's address, and that exactly one of its path and containerd gives the /v2 of the API.
func (r *rules) endpointPath(at, endpoint string, override bool) {
	u, ok := scope.WebURL(endpoint, "https", "http")
	v2 := ok && slices.Contains(strings.Split(u.Path, "/"), "v2")
	switch {
	case !ok || u.RawQuery != "" || u.Fragment != "" || u.Hostname() == "0.0.0.0" || u.Hostname() == "::":
		r.Addf(at, "%q is no endpoint: write an URL such as https://harbor.example.com/v2/dh", endpoint)
	case v2 && !override:
		r.Addf(at, "has /v2 in its path, and containerd adds another: set overridePath to true, or leave /v2 out")
	case !v2 && override:
		r.Addf(at, "has no /v2 in its path, and with overridePath containerd adds none: write it, or set overridePath to false")
	}
}

// registryNames are names of Docker Hub under which containerd asks no mirror, with the one it uses.
var registryNames = map[string]string{
	"index.docker.io": "docker.io", "registry-1.docker.io": "docker.io", "registry.hub.docker.com": "docker.io", "hub.docker.com": "docker.io",
	"docker.com": "docker.io", "registry.docker.io": "docker.io", "k8s.gcr.io": "registry.k8s.io",
}

func (r *rules) registryAuth(at string, reg spec.Registry) {
	switch {
	case reg.Password != nil && reg.Token != nil:
		r.Addf(at+".token", "is set beside a password: keep one of them")
	default:
		r.Together(at, reg.Username != nil, reg.Password != nil)
	}
	r.Certificate(at+".ca", reg.CA)
	if reg.CA != nil && spec.Value(reg.Insecure) {
		r.Addf(at+".insecure", "makes the ca pointless: keep one of them")
	}
}
