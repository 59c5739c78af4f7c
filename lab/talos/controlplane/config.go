// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package controlplane

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	talosconfig "github.com/siderolabs/talos/pkg/machinery/config/config"
	"sigs.k8s.io/yaml"

	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"
)

// clusterConfig returns the API server that the running control planes ask for. One process stands for
// all of them: it follows the first one's arguments, carries everybody's names in its certificate,
// and runs the oldest of their versions, so that a roll from version to version is one change at
// its end.
func clusterConfig(nodes, configured []Node) (Config, error) {
	cfg := nodes[0].Config()
	if cfg == nil || cfg.Cluster() == nil {
		return Config{}, errors.New("the control plane has no configuration")
	}
	cl, ca, aggregator := cfg.Cluster(), machineconfig.KubernetesCA(cfg), cfg.K8sAggregatorCAConfig()
	name := machineconfig.ClusterName(cfg)
	if ca == nil || len(ca.Key) == 0 || aggregator == nil || aggregator.IssuingCA() == nil || cfg.K8sServiceAccountConfig() == nil {
		return Config{Name: name}, errors.New("the control plane's configuration has no Kubernetes PKI")
	}

	encryption, err := encryptionConfig(cl.SecretboxEncryptionSecret(), cl.AESCBCEncryptionSecret())
	if doc := cfg.K8sEtcdEncryptionConfig(); doc != nil {
		encryption, err = encryptionDocument(doc.EtcdEncryptionConfig())
	}
	if err != nil {
		return Config{Name: name}, err
	}
	var audit []byte
	if policy := cfg.K8sAuditPolicyConfig(); policy != nil && len(policy.Configuration()) > 0 {
		if audit, err = yaml.Marshal(policy.Configuration()); err != nil {
			return Config{Name: name}, fmt.Errorf("encoding the audit policy: %w", err)
		}
	}

	admission, err := admissionConfig(cfg.K8sAdmissionControlPluginConfigs())
	if err != nil {
		return Config{Name: name}, err
	}

	return Config{
		Name:   name,
		CACert: ca.Crt, CAKey: ca.Key, AcceptedCAs: machineconfig.AcceptedKubernetesCAs(cfg),
		AggregatorCACert: aggregator.IssuingCA().Crt, AggregatorCAKey: aggregator.IssuingCA().Key,
		ServiceAccountKey: cfg.K8sServiceAccountConfig().IssuingKey().Key,
		CertSANs:          certSANs(nodes, configured),
		ServiceCIDRs:      machineconfig.Prefixes(cfg.K8sNetworkConfig().ServiceCIDRs()),
		PodCIDRs:          machineconfig.Prefixes(cfg.K8sNetworkConfig().PodCIDRs()),
		DNSDomain:         cfg.K8sNetworkConfig().DNSDomain(),
		EncryptionConfig:  encryption,
		APIServerArgs:     joined(cfg.K8sAPIServerConfig().ExtraArgs(), nodes[0].TalosVersion()),
		AuditPolicy:       audit,
		AdmissionConfig:   admission,
		Images:            nodes[0].Reachable,
		Version:           lowestVersion(nodes),
	}, nil
}

// joined returns flags as a command line has them: values of a list as one. Since 1.13 Talos leaves out a flag
// without a text.
func joined(args map[string][]string, talos string) map[string]string {
	flags := map[string]string{}
	for name, values := range args {
		if len(values) > 0 || !machineconfig.AtLeast(talos, 1, 13) {
			flags[name] = strings.Join(values, ",")
		}
	}

	return flags
}

// certSANs returns the names and addresses that control planes put into the API server's certificate.
// Addresses of control planes that are still to join are among them, so that joining changes
// nothing.
func certSANs(nodes, configured []Node) []string {
	sans := map[string]bool{"localhost": true, "127.0.0.1": true}

	add := func(n Node) {
		cfg := n.Config()
		if cfg == nil || cfg.Cluster() == nil {
			return
		}
		for _, s := range cfg.K8sAPIServerConfig().CertSANs() {
			sans[s] = true
		}
		sans[machineconfig.Endpoint(cfg).Hostname()] = true
		sans[n.Hostname()] = true
		for _, p := range n.WantedAddresses() {
			sans[p.Addr().String()] = true
		}
	}
	for _, n := range nodes {
		add(n)
	}
	for _, n := range configured {
		add(n)
	}

	if ips, err := machineconfig.ServiceIPs(nodes[0].Config(), apiServerPlace); err == nil {
		for _, ip := range ips {
			sans[ip.String()] = true
		}
	}
	delete(sans, "")

	return slices.Sorted(maps.Keys(sans))
}

func lowestVersion(nodes []Node) string {
	lowest := ""
	for _, n := range nodes {
		v := machineconfig.ImageVersion(n.Config().K8sAPIServerConfig().Image())
		if lowest == "" || olderVersion(v, lowest) {
			lowest = v
		}
	}

	return lowest
}

func olderVersion(a, b string) bool {
	va, errA := semver.ParseTolerant(a)
	vb, errB := semver.ParseTolerant(b)
	if errA != nil || errB != nil {
		return a < b
	}

	return va.LT(vb)
}

// encryptionConfig encrypts secrets with the key of the machine configuration, as Talos does.
func encryptionConfig(secretbox, aescbc string) ([]byte, error) {
	provider, key := "secretbox", secretbox
	if key == "" {
		provider, key = "aescbc", aescbc
	}
	if key == "" {
		return nil, nil
	}
	if _, err := base64.StdEncoding.DecodeString(key); err != nil {
		return nil, fmt.Errorf("decoding the %s secret: %w", provider, err)
	}

	content, err := yaml.Marshal(map[string]any{
		"apiVersion": "apiserver.config.k8s.io/v1",
		"kind":       "EncryptionConfiguration",
		"resources": []any{map[string]any{
			"resources": []string{"secrets"},
			"providers": []any{
				map[string]any{provider: map[string]any{
					"keys": []any{map[string]any{"name": "key2", "secret": key}},
				}},
				map[string]any{"identity": map[string]any{}},
			},
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the encryption configuration: %w", err)
	}

	return content, nil
}

// encryptionDocument returns the configuration that a document has, in a file's form.
func encryptionDocument(configuration map[string]any) ([]byte, error) {
	file := map[string]any{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration"}
	maps.Copy(file, configuration)
	content, err := yaml.Marshal(file)
	if err != nil {
		return nil, fmt.Errorf("encoding the encryption configuration: %w", err)
	}

	return content, nil
}

// admissionConfig configures admission plugins; Talos's defaults have PodSecurity enforce "baseline" everywhere but
// in kube-system.
func admissionConfig(plugins []talosconfig.K8sAdmissionControlPluginConfig) ([]byte, error) {
	if len(plugins) == 0 {
		return nil, nil
	}

	var all []any
	for _, p := range plugins {
		all = append(all, map[string]any{"name": p.Name(), "configuration": p.Configuration()})
	}
	content, err := yaml.Marshal(map[string]any{
		"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": all,
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the admission plugins' configuration: %w", err)
	}

	return content, nil
}
