// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
	document "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig/explain"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// machineDocument is what problems call the v1alpha1 machine configuration, which has no kind.
const machineDocument = "machine configuration"

// mode tells Talos's validation whether the node installs Talos from its configuration.
type mode struct{ install bool }

// String returns the name that Talos's messages use.
func (m mode) String() string { return "cloud" }

// RequiresInstall reports whether an ISO installs Talos on a blank disk. Talos itself demands no
// install section on the nocloud platform, and would wait for ever without one.
func (m mode) RequiresInstall() bool { return m.install }

// InContainer reports false: nodes are virtual machines.
func (m mode) InContainer() bool { return false }

// modeOf returns the mode of a node.
func modeOf(cfg spec.Config, node spec.NamedNode) mode {
	image := cfg.Image(node)

	return mode{install: spec.Value(image.Boot) == "iso" || spec.Value(image.Platform) == "metal"}
}

// refusals returns what Talos itself, and we for it, find wrong with a node's configuration; each names
// the document.
func refusals(cfg spec.Config, node spec.NamedNode, provider config.Provider) []string {
	var found []string
	report := func(doc string, messages ...string) {
		for _, m := range messages {
			if own, would := ofOwnTalos(cfg, m); would {
				found = append(found, fmt.Sprintf("document %s: %s", doc, own))
			}
		}
	}
	m := modeOf(cfg, node)
	main, others := split(provider)
	if main == nil {
		report(machineDocument, "is missing")

		return found
	}
	_, err := main.Validate(m)
	report(machineDocument, explain.Messages(err)...)
	for _, doc := range others {
		if v, ok := doc.(document.Validator); ok {
			_, err := v.Validate(m)
			report(documentName(doc), explain.Messages(err)...)
		}
		if v, ok := doc.(container.V1Alpha1ConflictValidator); ok {
			report(documentName(doc), explain.Messages(v.V1Alpha1ConflictValidate(main))...)
		}
		if message := tooNew(cfg, doc); message != "" {
			report(documentName(doc), message)
		}
		if _, isVIP := doc.(*network.Layer2VIPConfigV1Alpha1); isVIP && !node.IsControlPlane() {
			report(documentName(doc), "a shared address is for control planes only")
		}
	}
	report(machineDocument, ownRules(node, provider, main)...)
	for _, f := range flagsLeftOut(cfg, provider, main) {
		report(f.document, f.message)
	}
	if len(found) > 0 {
		return found
	}
	// Only documents that stand each by itself can be judged together.
	_, err = provider.ValidateAsClient(m)
	for _, message := range explain.Messages(err) {
		if own, would := ofOwnTalos(cfg, message); would {
			found = append(found, "the documents together: "+own)
		}
	}

	return found
}

// documentName returns "LinkConfig net0", or the kind alone.
func documentName(doc document.Document) string {
	if named, ok := doc.(document.NamedDocument); ok && named.Name() != "" {
		return doc.Kind() + " " + named.Name()
	}

	return doc.Kind()
}

// ownRules returns what Talos finds out only while it runs, or not at all.
func ownRules(node spec.NamedNode, provider config.Provider, main *v1alpha1.Config) []string {
	var found []string
	if want := nodeType(node); main.MachineConfig.MachineType != want {
		found = append(found, fmt.Sprintf("machine.type must stay %s", want))
	}
	if node.IsControlPlane() {
		found = append(found, unencrypted(provider, main)...)
	}
	for _, f := range main.MachineConfig.MachineFiles {
		if f.FileOp == "create" && !scope.CreatableFile(f.FilePath) {
			found = append(found, fmt.Sprintf("machine.files: %s cannot be created: only files below /var can", f.FilePath))
		}
	}
	if !node.IsControlPlane() {
		path, labels := "machine.nodeLabels", main.MachineConfig.MachineNodeLabels
		if provider.Has(k8s.KubeNodeConfig) {
			path, labels = k8s.KubeNodeConfig+".labels", provider.K8sNodeConfig().Labels()
		}
		for _, label := range sortedKeys(labels) {
			if scope.ReservedLabel(label) {
				found = append(found, fmt.Sprintf("%s: Kubernetes lets no worker give itself the label %s", path, label))
			}
		}
	}

	return found
}

// unencrypted returns a problem when nothing encrypts the secrets in etcd.
func unencrypted(provider config.Provider, main *v1alpha1.Config) []string {
	if doc := provider.K8sEtcdEncryptionConfig(); doc != nil {
		resources, _ := doc.EtcdEncryptionConfig()["resources"].([]any)
		for _, r := range resources {
			resource, _ := r.(map[string]any)
			names, _ := resource["resources"].([]any)
			providers, _ := resource["providers"].([]any)
			if !slices.Contains(names, any("secrets")) || len(providers) == 0 {
				continue
			}
			if first, _ := providers[0].(map[string]any); first["identity"] == nil {
				return nil
			}
		}

		return []string{"secrets in etcd would not be encrypted: keep the first provider of KubeEtcdEncryptionConfig for secrets"}
	}
	if c := main.ClusterConfig; c != nil && c.ClusterSecretboxEncryptionSecret == "" && c.ClusterAESCBCEncryptionSecret == "" {
		return []string{"secrets in etcd would not be encrypted: " +
			"keep cluster.secretboxEncryptionSecret or cluster.aescbcEncryptionSecret"}
	}

	return nil
}

// nodeType returns the node's role in Talos's words.
func nodeType(node spec.NamedNode) string {
	if node.IsControlPlane() {
		return "controlplane"
	}

	return "worker"
}

// tooNew says that the cluster's Talos does not know the kind of document yet.
func tooNew(cfg spec.Config, doc document.Document) string {
	talos, err := versions.ParseTalos(spec.Value(cfg.Talos.Version))
	if err != nil {
		return ""
	}
	if since := versions.Introduced(doc.Kind()); since.NewerThan(talos.Contract()) {
		return fmt.Sprintf("Talos knows this kind since %s, but the cluster runs %s", since, talos)
	}

	return ""
}

// ofLibrary matches a complaint that the library makes of Kubernetes in the name of its own version of Talos.
var ofLibrary = regexp.MustCompile(`version of Kubernetes (\S+) is too (?:old|new) to be used with Talos \S+`)

// ofOwnTalos returns a complaint as the cluster's own Talos would make it, and reports whether it would: an older Talos
// takes an older Kubernetes.
func ofOwnTalos(cfg spec.Config, message string) (string, bool) {
	found := ofLibrary.FindStringSubmatch(message)
	if found == nil {
		return message, true
	}
	kubernetes, err := versions.ParseKubernetes(found[1])
	if err != nil {
		return message, true
	}
	talos, err := versions.ParseTalos(spec.Value(cfg.Talos.Version))
	if err != nil {
		return message, true
	}
	refused := kubernetes.RefusedBy(talos)
	if refused == nil {
		return "", false
	}

	return strings.Replace(message, found[0], refused.Error(), 1), true
}
