// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"errors"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// filesApart checks that no file is where another one needs a directory.
func (r *rules) filesApart(files map[string]spec.MachineFile) {
	for _, name := range scope.SortedKeys(files) {
		for _, other := range scope.SortedKeys(files) {
			if strings.HasPrefix(name, other+"/") {
				r.Addf(check.Key("talos.files", name), "is below %s, which is a file: choose another path", other)
			}
		}
	}
}

// containerd checks a part of containerd's configuration, with which no pod would start if it could not be read.
func (r *rules) containerd(at string, content spec.Text) {
	var settings map[string]any
	var wrong toml.ParseError
	if _, err := toml.Decode(string(content), &settings); errors.As(err, &wrong) {
		r.Addf(at, "is no TOML that containerd could read, at its line %d: write such as [plugins] and below it what it has", wrong.Position.Line)
	}
}

// sysfs checks names of settings below /sys, which are written with dots.
func (r *rules) sysfs(settings map[string]string) {
	for _, name := range scope.SortedKeys(settings) {
		bare := strings.TrimPrefix(strings.TrimPrefix(strings.ReplaceAll(strings.Trim(name, "/"), "/", "."), "sys."), ".")
		if bare != name {
			r.Addf(check.Key("talos.sysfs", name), "%q is no name of a setting below /sys: write %s", name, bare)
		}
	}
}

// hostDNS checks that what asks the caching resolver has one, and what it is told by.
func (r *rules) hostDNS() {
	said := spec.Value(r.Said.Talos.HostDNS)
	enabled := *r.Config.Talos.HostDNS.Enabled
	for name, on := range map[string]bool{
		"forwardKubeDnsToHost": spec.Value(said.ForwardKubeDNSToHost), "resolveMemberNames": spec.Value(said.ResolveMemberNames),
	} {
		if on && !enabled {
			r.Addf("talos.hostDns."+name, "needs talos.hostDns.enabled, which is false: set that to true, or remove it")
		}
	}
	if spec.Value(said.ResolveMemberNames) && enabled && !*r.Config.Talos.Discovery {
		r.Addf("talos.hostDns.resolveMemberNames", "needs talos.discovery, by which nodes learn of each other: set that to true, or remove it")
	}
}

// apiAccess checks that what allows pods to ask the Talos API allows any to ask anything.
func (r *rules) apiAccess(a spec.APIAccess) {
	var missing []string
	if len(a.Roles) == 0 {
		missing = append(missing, "roles such as os:reader")
	}
	if len(a.Namespaces) == 0 {
		missing = append(missing, "namespaces such as kube-system")
	}
	if *a.Enabled && len(missing) > 0 {
		r.Addf("talos.apiAccess", "gives no pod access to the Talos API: name %s", strings.Join(missing, ", and "))
	}
}

// saysNothing reports whether a registry's entry changes nothing.
func saysNothing(reg spec.Registry) bool {
	reachable := reg.Endpoints != nil || reg.CA != nil || spec.Value(reg.Insecure)
	authenticated := reg.Username != nil || reg.Password != nil || reg.Token != nil

	return !reachable && !authenticated && !spec.Value(reg.SkipFallback) && !spec.Value(reg.OverridePath)
}

// registryName checks that a registry is named as containerd asks for it, and that something is said of it.
func (r *rules) registryName(at, name string, reg spec.Registry) {
	host, port, _ := strings.Cut(name, ":")
	switch {
	case name != strings.ToLower(name):
		r.Addf(at, "has capital letters, with which containerd never asks: write %s", strings.ToLower(name))
	case port == "443" || registryNames[host] != "" && port != "":
		r.Addf(at, "names the port, with which containerd never asks: write %s", host)
	case name == "*" && (reg.Username != nil || reg.Password != nil || reg.Token != nil):
		r.Addf(at, "has credentials, which belong to one registry: write them at that registry's host")
	case saysNothing(reg):
		r.Addf(at, "says nothing of the registry: name its mirrors under endpoints, or remove it")
	}
}
