// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rules

import (
	"encoding/pem"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// talosRoles are what pods may ask of the Talos API.
var talosRoles = []string{"os:admin", "os:etcd:backup", "os:impersonator", "os:operator", "os:reader"}

// talos checks the operating system's side.
func (r *rules) talos() {
	t := r.c.Talos
	keysMatch(r, "talos.sysctls", t.Sysctls, sysctlForm.MatchString, "is no kernel parameter such as vm.nr_hugepages")
	keysMatch(r, "talos.kernelModules", t.KernelModules, moduleForm.MatchString, "is no name of a kernel module")
	for _, name := range sortedKeys(t.Files) {
		r.machineFile(name, t.Files[name])
	}
	for _, name := range sortedKeys(t.TrustedRoots) {
		r.blockName(check.Key("talos.trustedRoots", name), name)
		if !isCertificate(t.TrustedRoots[name]) {
			r.l.Addf(check.Key("talos.trustedRoots", name),
				"is not a CA certificate: give it in PEM form, -----BEGIN CERTIFICATE-----")
		}
	}
	for i, destination := range t.LogDestinations {
		if u, ok := webURL(destination, "tcp", "udp"); !ok || u.Port() == "" {
			r.l.Addf(check.Index("talos.logDestinations", i),
				"%q is no destination: write tcp://<host>:<port> or udp://<host>:<port>", destination)
		}
	}
	if a := t.APIAccess; a != nil {
		for i, role := range a.Roles {
			if !slices.Contains(talosRoles, role) {
				r.l.Addf(check.Index("talos.apiAccess.roles", i), "%s", notOneOf(role, talosRoles))
			}
		}
		r.each("talos.apiAccess.namespaces", a.Namespaces, labelForm.MatchString, "is no name of a namespace")
	}
	if port := *t.KubePrism.Port; *t.KubePrism.Enabled && slices.Contains([]int{6443, 50000, 50001, 2379, 2380, 10250}, port) {
		r.l.Addf("talos.kubePrism.port", "%d is taken on every node: choose another, such as 7445", port)
	}
	if t.DiskEncryption != nil {
		r.encryption("talos.diskEncryption.state", t.DiskEncryption.State)
		r.encryption("talos.diskEncryption.ephemeral", t.DiskEncryption.Ephemeral)
	}
	r.patches("talos.patches.all", t.Patches.All)
	r.patches("talos.patches.controlPlane", t.Patches.ControlPlane)
	r.patches("talos.patches.worker", t.Patches.Worker)
}

func (r *rules) machineFile(name string, f spec.MachineFile) {
	at := check.Key("talos.files", name)
	if !path.IsAbs(name) || path.Clean(name) != name {
		r.l.Addf(at, "%q is no path on a node: write it from / on", name)
	}
	if n, err := strconv.ParseUint(*f.Permissions, 0, 32); err != nil || n > 0o7777 || !strings.HasPrefix(*f.Permissions, "0") {
		r.l.Addf(at+".permissions", "%q are no permissions: write them in octal, such as \"0o644\"", *f.Permissions)
	}
}

// certificate checks a CA certificate.
func (r *rules) certificate(path string, ca *spec.Text) {
	if ca != nil && !isCertificate(*ca) {
		r.l.Addf(path, "is not a CA certificate: give it in PEM form, -----BEGIN CERTIFICATE-----")
	}
}

// isCertificate says whether text begins with a PEM certificate.
func isCertificate(text spec.Text) bool {
	block, _ := pem.Decode([]byte(text))

	return block != nil && block.Type == "CERTIFICATE"
}

// encryption checks where a key comes from.
func (r *rules) encryption(path string, e *spec.Encryption) {
	if e == nil {
		return
	}
	kind := *e.Key
	switch {
	case kind == "kms" && e.KMSEndpoint == nil:
		r.l.Addf(path+".kmsEndpoint", "is required with key kms")
	case kind != "kms" && e.KMSEndpoint != nil:
		r.l.Addf(path+".kmsEndpoint", "is for key kms, and the key is %s: remove one of them", kind)
	case e.KMSEndpoint != nil:
		if _, ok := webURL(*e.KMSEndpoint, "https", "http", "grpc"); !ok {
			r.l.Addf(path+".kmsEndpoint", "%q is no address such as https://kms.example.com:4050", *e.KMSEndpoint)
		}
	}
	switch {
	case kind == "static" && e.Passphrase == nil:
		r.l.Addf(path+".passphrase", "is required with key static")
	case kind != "static" && e.Passphrase != nil:
		r.l.Addf(path+".passphrase", "is for key static, and the key is %s: remove one of them", kind)
	}
	if kind != "tpm" {
		return
	}
	for _, n := range r.c.Nodes {
		if n.TPM == nil {
			r.l.Addf(nodePath(n)+".tpm", "is required, since %s takes its key from the TPM", path)
		}
	}
}

// patches checks a list of patches; what they do is checked with the rendered configuration.
func (r *rules) patches(path string, patches []spec.Patch) {
	for i, p := range patches {
		at := check.Index(path, i)
		switch {
		case p.Inline == nil && p.File == nil:
			r.l.Addf(at, "needs inline or file")
		case p.Inline != nil && p.File != nil:
			r.l.Addf(at, "has both inline and file: keep one")
		case p.Inline != nil && !isYAML(*p.Inline):
			r.l.Addf(at+".inline", "is not YAML")
		}
		r.file(at+".file", p.File)
	}
}

// registries checks mirrors and credentials.
func (r *rules) registries() {
	for _, name := range sortedKeys(r.c.Talos.Registries) {
		reg := r.c.Talos.Registries[name]
		at := check.Key("talos.registries", name)
		if _, ok := webURL("https://"+name, "https"); name != "*" && (!ok || strings.Contains(name, "/")) {
			r.l.Addf(at, "%q is no registry: write its host such as docker.io, or *", name)
		}
		for i, endpoint := range reg.Endpoints {
			if _, ok := webURL(endpoint, "https", "http"); !ok {
				r.l.Addf(check.Index(at+".endpoints", i),
					"%q is no endpoint: write an URL such as https://harbor.example.com/v2/dh", endpoint)
			}
		}
		if len(reg.Endpoints) == 0 && (spec.Or(reg.OverridePath, false) || spec.Or(reg.SkipFallback, false)) {
			r.l.Addf(at+".endpoints", "is required where overridePath or skipFallback is set: name the mirrors")
		}
		r.registryAuth(at, reg)
	}
}

func (r *rules) registryAuth(at string, reg spec.Registry) {
	switch {
	case reg.Password != nil && reg.Token != nil:
		r.l.Addf(at+".token", "stands beside a password: keep one of them")
	case (reg.Password == nil) != (reg.Username == nil):
		r.l.Addf(at, "needs username and password together")
	}
	r.certificate(at+".ca", reg.CA)
	if reg.CA != nil && spec.Or(reg.Insecure, false) {
		r.l.Addf(at+".insecure", "makes the ca pointless: keep one of them")
	}
}
