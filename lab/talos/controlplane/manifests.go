// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package controlplane

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"text/template"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"
)

//go:embed manifests/*.yaml
var manifestFiles embed.FS

// manifest holds a named document set, in the order in which Talos applies them.
type manifest struct {
	name    string
	content []byte
}

// bootstrapManifests returns what Talos itself brings, then the configuration's inline manifests.
func bootstrapManifests(cfg config.Provider) ([]manifest, error) {
	names := []string{
		"00-kubelet-bootstrapping-token", "01-csr-node-bootstrap", "01-csr-approver-role-binding", "01-csr-renewal-role-binding",
		"11-kube-config-in-cluster", "11-talos-node-rbac-template",
	}
	if cfg.K8sFlannelCNIConfig() != nil {
		names = append(names, "05-flannel")
	}
	if cfg.K8sProxyConfig().Enabled() {
		names = append(names, "10-kube-proxy")
	}
	if cfg.K8sCoreDNSConfig().Enabled() {
		names = append(names, "11-core-dns", "11-core-dns-svc")
	}
	if cfg.K8sTalosAPIAccessConfig() != nil {
		names = append(names, "13-talos-service-account-crd")
	}

	values, err := manifestValues(cfg)
	if err != nil {
		return nil, err
	}
	var out []manifest
	for _, name := range names {
		t, err := template.ParseFS(manifestFiles, "manifests/"+name+".yaml")
		if err != nil {
			return nil, fmt.Errorf("reading manifest %s: %w", name, err)
		}
		var buf bytes.Buffer
		if err := t.Execute(&buf, values); err != nil {
			return nil, fmt.Errorf("rendering manifest %s: %w", name, err)
		}
		out = append(out, manifest{name: name, content: buf.Bytes()})
	}
	for _, m := range cfg.K8sInlineManifestConfigs() {
		out = append(out, manifest{name: inlinePriority + m.Name(), content: []byte(m.Contents())})
	}

	return out, nil
}

// inlinePriority begins the names of the configuration's own manifests.
const inlinePriority = "99-"

// BootstrapObjects returns what Talos itself brings and the configuration's inline manifests, by name.
func BootstrapObjects(cfg config.Provider) (map[string][]*unstructured.Unstructured, error) {
	all, err := bootstrapManifests(cfg)
	if err != nil {
		return nil, err
	}
	objects := map[string][]*unstructured.Unstructured{}
	for _, m := range all {
		if objects[m.name], err = m.objects(); err != nil {
			return nil, err
		}
	}

	return objects, nil
}

// Where services of Kubernetes stand in the service network.
const (
	apiServerPlace = 1
	dnsPlace       = 10
)

type manifestInput struct {
	PodCIDR, DNSDomain, DNSServiceIP    string
	ProxyImage, ProxyMode, CoreDNSImage string
	TokenID, TokenSecret, Server        string
}

func manifestValues(cfg config.Provider) (manifestInput, error) {
	dns, err := machineconfig.ServiceIPs(cfg, dnsPlace)
	if err != nil {
		return manifestInput{}, fmt.Errorf("finding the DNS service's address: %w", err)
	}
	in := manifestInput{
		DNSDomain: cfg.K8sNetworkConfig().DNSDomain(), ProxyImage: cfg.K8sProxyConfig().Image(),
		ProxyMode: cfg.K8sProxyConfig().Mode(), CoreDNSImage: cfg.K8sCoreDNSConfig().Image(),
		TokenID: cfg.Cluster().Token().ID(), TokenSecret: cfg.Cluster().Token().Secret(), Server: machineconfig.Endpoint(cfg).String(),
	}
	if prism := cfg.K8sKubePrismConfig(); prism != nil {
		in.Server = fmt.Sprintf("https://127.0.0.1:%d", prism.Port())
	}
	if len(dns) > 0 {
		in.DNSServiceIP = dns[0].String()
	}
	if cidrs := cfg.K8sNetworkConfig().PodCIDRs(); len(cidrs) > 0 {
		in.PodCIDR = cidrs[0].String()
	}

	return in, nil
}

// extraManifests downloads the manifests that a configuration names by URL: those of a custom CNI
// first.
func extraManifests(ctx context.Context, client *http.Client, cfg config.Provider) ([]manifest, error) {
	var out []manifest
	var errs []error
	for _, m := range cfg.K8sExternalManifestConfigs() {
		content, err := download(ctx, client, m.URL(), m.Headers())
		if err != nil {
			errs = append(errs, err)

			continue
		}
		out = append(out, manifest{name: m.URL(), content: content})
	}

	return out, errors.Join(errs...)
}

func download(ctx context.Context, client *http.Client, url string, headers map[string]string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("error downloading %q: %w", url, err)
	}
	for k, v := range headers {
		req.Header.Set(k, v)
	}

	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("error downloading %q: %w", url, err)
	}
	defer resp.Body.Close() //nolint:errcheck // read to the end or given up
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("error downloading %q: unexpected status %s", url, resp.Status)
	}
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("error downloading %q: %w", url, err)
	}

	return content, nil
}

// objects splits a manifest into its documents. Lists are taken apart.
func (m manifest) objects() ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(m.content), 4096)
	for {
		var o unstructured.Unstructured
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, fmt.Errorf("error parsing manifest %s: %w", m.name, err)
		}
		if len(o.Object) == 0 {
			continue
		}
		if !o.IsList() {
			out = append(out, &o)

			continue
		}
		err = o.EachListItem(func(item runtime.Object) error {
			if u, ok := item.(*unstructured.Unstructured); ok {
				out = append(out, u)
			}

			return nil
		})
		if err != nil {
			return out, fmt.Errorf("error parsing manifest %s: %w", m.name, err)
		}
	}
}
