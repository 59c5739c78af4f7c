// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package manifests

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// gatewayFiles returns the Gateway API's definitions that are files of the project.
func (in Input) gatewayFiles(settings spec.Cilium) ([]part, error) {
	if settings.GatewayAPI == nil {
		return nil, nil
	}
	var parts []part
	for i, place := range settings.GatewayAPI.CRDs {
		if strings.Contains(place, "://") {
			continue
		}
		text, err := in.inline(spec.Manifest{File: spec.Ptr(place)})
		if err != nil {
			return nil, check.At(check.Index("cni.cilium.gatewayApi.crds", i), err)
		}
		parts = append(parts, part{name: fmt.Sprintf("gateway-api-%d", i), contents: text})
	}

	return parts, nil
}

// ExtraURLs returns the manifests that control planes download, in order: the Gateway API's definitions,
// then the user's.
func ExtraURLs(cfg spec.Config) ([]string, error) {
	urls, err := gatewayURLs(cfg)
	if err != nil {
		return nil, err
	}

	urls = append(urls, cfg.Manifests.Extra...)
	if err := checkHeaders(cfg, urls); err != nil {
		return nil, err
	}

	return urls, nil
}

// checkHeaders refuses headers where control planes fetch from several hosts: Talos sends them with every manifest,
// and a token meant for one host would reach the others.
func checkHeaders(cfg spec.Config, urls []string) error {
	if len(cfg.Manifests.ExtraHeaders) == 0 {
		return nil
	}
	host := ""
	for _, place := range urls {
		u, err := url.Parse(place)
		switch {
		case err != nil:
			return fmt.Errorf("%s is no URL", redact(place))
		case host == "":
			host = u.Host
		case u.Host != host:
			return check.At("manifests.extraHeaders", fmt.Errorf("control planes would send them to %s and to %s: fetch everything "+
				"from one host, or write manifests inline; cni.cilium.gatewayApi.crds takes files", host, u.Host))
		}
	}

	return nil
}

// gatewaySources is where the Gateway API's releases are.
const gatewaySources = "https://raw.githubusercontent.com/kubernetes-sigs/gateway-api"

// gatewayURLs returns the definitions that are downloaded: those the stack names, else the release's
// that Cilium's documentation names for the chart.
func gatewayURLs(cfg spec.Config) ([]string, error) {
	gateway := spec.Value(cfg.CNI.Cilium).GatewayAPI
	if !cfg.UsesCilium() || gateway == nil {
		return nil, nil
	}
	var urls []string
	if len(gateway.CRDs) > 0 {
		for _, place := range gateway.CRDs {
			if strings.Contains(place, "://") {
				urls = append(urls, place)
			}
		}

		return urls, nil
	}
	version := spec.Value(gateway.Version)
	if version == "" {
		var err error
		if version, err = versions.GatewayAPI(*CiliumChart(cfg).Version); err != nil {
			return nil, check.At("cni.cilium.gatewayApi.version", err)
		}
	}
	for _, name := range []string{
		"standard/gateway.networking.k8s.io_gatewayclasses", "standard/gateway.networking.k8s.io_gateways",
		"standard/gateway.networking.k8s.io_httproutes", "standard/gateway.networking.k8s.io_referencegrants",
		"standard/gateway.networking.k8s.io_grpcroutes", "experimental/gateway.networking.k8s.io_tlsroutes",
	} {
		urls = append(urls, fmt.Sprintf("%s/%s/config/crd/%s.yaml", gatewaySources, version, name))
	}

	return urls, nil
}

// apiServerGateway puts a Gateway in front of the Kubernetes API. TLS goes through, so that clients see
// the API servers' own certificate and show them theirs.
func apiServerGateway(a spec.GatewayAPIServer) string {
	const name, namespace = "kubernetes-api", "default" // where the service kubernetes is
	meta := func() object { return object{"name": name, "namespace": namespace} }
	gateway := object{
		"gatewayClassName": "cilium",
		"listeners": list{object{
			"name": "api", "protocol": "TLS", "port": spec.Value(a.Port), "hostname": a.Hostname,
			"tls":           object{"mode": "Passthrough"},
			"allowedRoutes": object{"namespaces": object{"from": "Same"}},
		}},
	}
	if a.Address != nil {
		gateway["addresses"] = list{object{"type": "IPAddress", "value": *a.Address}}
	}

	return mustYAML(object{
		"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": meta(), "spec": gateway,
	}) + mustYAML(object{
		// The newest version of the kind that every release has which Cilium names.
		"apiVersion": "gateway.networking.k8s.io/v1alpha2", "kind": "TLSRoute", "metadata": meta(),
		"spec": object{
			"parentRefs": list{object{"name": name}},
			"hostnames":  list{a.Hostname},
			"rules":      list{object{"backendRefs": list{object{"name": "kubernetes", "port": 443}}}},
		},
	})
}
