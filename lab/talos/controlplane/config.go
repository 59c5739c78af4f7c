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
	cl := cfg.Cluster()
	if cl.IssuingCA() == nil || len(cl.IssuingCA().Key) == 0 || cl.AggregatorCA() == nil || cl.ServiceAccount() == nil {
		return Config{Name: cl.Name()}, errors.New("the control plane's configuration has no Kubernetes PKI")
	}

	encryption, err := encryptionConfig(cl.SecretboxEncryptionSecret(), cl.AESCBCEncryptionSecret())
	if err != nil {
		return Config{Name: cl.Name()}, err
	}
	var audit []byte
	if policy := cl.APIServer().AuditPolicy(); len(policy) > 0 {
		if audit, err = yaml.Marshal(policy); err != nil {
			return Config{Name: cl.Name()}, fmt.Errorf("encoding the audit policy: %w", err)
		}
	}

	admission, err := admissionConfig(cl.APIServer().AdmissionControl())
	if err != nil {
		return Config{Name: cl.Name()}, err
	}

	return Config{
		Name:   cl.Name(),
		CACert: cl.IssuingCA().Crt, CAKey: cl.IssuingCA().Key,
		AggregatorCACert: cl.AggregatorCA().Crt, AggregatorCAKey: cl.AggregatorCA().Key,
		ServiceAccountKey: cl.ServiceAccount().Key,
		CertSANs:          certSANs(nodes, configured),
		ServiceCIDRs:      cl.Network().ServiceCIDRs(),
		PodCIDRs:          cl.Network().PodCIDRs(),
		DNSDomain:         cl.Network().DNSDomain(),
		EncryptionConfig:  encryption,
		APIServerArgs:     joined(cl.APIServer().ExtraArgs(), nodes[0].TalosVersion()),
		AuditPolicy:       audit,
		AdmissionConfig:   admission,
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
		for _, s := range cfg.Cluster().CertSANs() {
			sans[s] = true
		}
		if e := cfg.Cluster().Endpoint(); e != nil {
			sans[e.Hostname()] = true
		}
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

	if ips, err := nodes[0].Config().Cluster().Network().APIServerIPs(); err == nil {
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
		v := machineconfig.ImageVersion(n.Config().Cluster().APIServer().Image())
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

// admissionConfig configures admission plugins; Talos's defaults have PodSecurity enforce "baseline" everywhere but
// in kube-system.
func admissionConfig(plugins []talosconfig.AdmissionPlugin) ([]byte, error) {
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
