// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package airgap

import (
	"net/url"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Mirrored returns where nodes pull an image from: the first endpoint of its registry's mirror, else the
// registry itself.
func Mirrored(registries map[string]spec.Registry, reference string) string {
	host, rest := split(reference)
	registry, ok := registries[host]
	if !ok || len(registry.Endpoints) == 0 {
		registry = registries["*"]
	}
	if len(registry.Endpoints) == 0 {
		return host + "/" + rest
	}
	endpoint, err := url.Parse(registry.Endpoints[0])
	if err != nil {
		return host + "/" + rest
	}
	path := strings.Trim(endpoint.Path, "/")
	if spec.Value(registry.OverridePath) {
		// The endpoint holds the registry's API path itself; what follows it is part of the name.
		path = strings.Trim(strings.TrimPrefix(path, "v2"), "/")
	}
	if path != "" {
		path += "/"
	}

	return endpoint.Host + "/" + path + rest
}

// split parts an image reference into its registry and the rest, as containerd reads it.
func split(reference string) (host, rest string) {
	first, rest, ok := strings.Cut(reference, "/")
	if ok && (strings.ContainsAny(first, ".:") || first == "localhost") {
		return first, rest
	}
	if !ok {
		return "docker.io", "library/" + reference
	}

	return "docker.io", reference
}

// hostOf returns the host of a URL or an image reference.
func hostOf(name string) string {
	if strings.Contains(name, "://") {
		u, err := url.Parse(name)
		if err != nil {
			return ""
		}

		return u.Host
	}
	host, _ := split(name)

	return host
}

// mirror reports whether the host is one of the stack's mirrors.
func (l *lister) mirror(host string) bool {
	for _, registry := range l.cfg.Talos.Registries {
		for _, endpoint := range registry.Endpoints {
			if hostOf(endpoint) == host {
				return true
			}
		}
	}
	for _, img := range l.cfg.Images {
		for _, mirror := range []*string{img.ISOMirror, img.InstallerMirror} {
			if mirror != nil && (hostOf(*mirror) == host || strings.SplitN(*mirror, "/", 2)[0] == host) {
				return true
			}
		}
	}

	return false
}
