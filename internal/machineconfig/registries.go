// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig

import (
	"errors"
	"net/url"

	"github.com/siderolabs/talos/pkg/machinery/config/types/cri"
	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// addRegistries writes mirrors, credentials and certificates, by registry.
func (r *builder) addRegistries() error {
	for _, name := range sortedKeys(r.cfg.Talos.Registries) {
		registry := r.cfg.Talos.Registries[name]
		if !r.contract.RegistryDocuments() {
			r.addLegacyRegistry(name, registry)

			continue
		}
		if err := r.addRegistry(name, registry); err != nil {
			return check.At(check.Key("talos.registries", name), err)
		}
	}

	return nil
}

// addRegistry writes the registry's documents.
func (r *builder) addRegistry(name string, registry spec.Registry) error {
	if len(registry.Endpoints) > 0 {
		doc := cri.NewRegistryMirrorConfigV1Alpha1(name)
		for _, endpoint := range registry.Endpoints {
			u, err := url.Parse(endpoint)
			if err != nil {
				return errors.New("an endpoint is not a URL such as https://harbor.example.com/v2/dh")
			}
			doc.RegistryEndpoints = append(doc.RegistryEndpoints,
				cri.RegistryEndpoint{EndpointURL: meta.URL{URL: u}, EndpointOverridePath: truth(registry.OverridePath)})
		}
		doc.RegistrySkipFallback = truth(registry.SkipFallback)
		r.add(doc)
	}
	if hasCredentials(registry) {
		doc := cri.NewRegistryAuthConfigV1Alpha1(name)
		doc.RegistryUsername = spec.Value(registry.Username)
		doc.RegistryPassword = spec.Value(registry.Password).Reveal()
		doc.RegistryIdentityToken = spec.Value(registry.Token).Reveal()
		r.add(doc)
	}
	if registry.CA != nil || spec.Value(registry.Insecure) {
		doc := cri.NewRegistryTLSConfigV1Alpha1(name)
		doc.TLSCA = string(spec.Value(registry.CA))
		doc.TLSInsecureSkipVerify = truth(registry.Insecure)
		r.add(doc)
	}

	return nil
}

// addLegacyRegistry writes the registry into the machine configuration.
func (r *builder) addLegacyRegistry(name string, registry spec.Registry) {
	all := &r.machine.MachineRegistries
	if len(registry.Endpoints) > 0 {
		if all.RegistryMirrors == nil {
			all.RegistryMirrors = map[string]*v1alpha1.RegistryMirrorConfig{}
		}
		all.RegistryMirrors[name] = &v1alpha1.RegistryMirrorConfig{
			MirrorEndpoints:    registry.Endpoints,
			MirrorOverridePath: truth(registry.OverridePath),
			MirrorSkipFallback: truth(registry.SkipFallback),
		}
	}
	config := &v1alpha1.RegistryConfig{}
	if hasCredentials(registry) {
		config.RegistryAuth = &v1alpha1.RegistryAuthConfig{
			RegistryUsername:      spec.Value(registry.Username),
			RegistryPassword:      spec.Value(registry.Password).Reveal(),
			RegistryIdentityToken: spec.Value(registry.Token).Reveal(),
		}
	}
	if registry.CA != nil || spec.Value(registry.Insecure) {
		config.RegistryTLS = &v1alpha1.RegistryTLSConfig{
			TLSCA: v1alpha1.Base64Bytes(spec.Value(registry.CA)), TLSInsecureSkipVerify: truth(registry.Insecure),
		}
	}
	if config.RegistryAuth == nil && config.RegistryTLS == nil {
		return
	}
	if all.RegistryConfig == nil {
		all.RegistryConfig = map[string]*v1alpha1.RegistryConfig{}
	}
	all.RegistryConfig[name] = config
}

// hasCredentials reports whether the registry asks who one is.
func hasCredentials(r spec.Registry) bool {
	return r.Username != nil || r.Password != nil || r.Token != nil
}

// truth returns nil unless b is true, so that defaults are not written out.
func truth(b *bool) *bool {
	if !spec.Value(b) {
		return nil
	}

	return b
}
