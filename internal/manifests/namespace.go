// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package manifests

import (
	"slices"
	"strings"
)

// clusterKinds are Kubernetes's own kinds that live in no namespace.
var clusterKinds = []string{
	"APIService", "CSIDriver", "CSINode", "CertificateSigningRequest", "ClusterRole", "ClusterRoleBinding",
	"ClusterTrustBundle", "CustomResourceDefinition", "DeviceClass", "FlowSchema", "IPAddress", "IngressClass",
	"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration", "Namespace", "Node",
	"PersistentVolume", "PriorityClass", "PriorityLevelConfiguration", "ResourceSlice", "RuntimeClass", "ServiceCIDR",
	"StorageClass", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
	"VolumeAttachment", "VolumeAttributesClass",
}

// inNamespace gives objects that name no namespace the release's, as Helm does when it installs: Talos
// would put them into "default". Of kinds that neither Kubernetes nor the text itself defines nobody
// knows here whether they live in one, and they stay as they are.
func inNamespace(text, namespace string) (string, error) {
	documents := strings.Split(text, "---\n")
	all, err := objects(text)
	if err != nil {
		return "", err
	}
	defined := namespacedKinds(all)
	for i, document := range documents {
		found, err := objects(document)
		if err != nil || len(found) != 1 {
			continue // nothing, or a scalar with a line of dashes: the whole was read before
		}
		o := found[0]
		if stringAt(o, "metadata", "namespace") != "" || !namespaced(o, defined) {
			continue
		}
		meta, ok := o["metadata"].(object)
		if !ok {
			continue
		}
		meta["namespace"] = namespace
		documents[i] = strings.TrimPrefix(mustYAML(o), "---\n")
	}

	return strings.Join(documents, "---\n"), nil
}

// namespacedKinds returns the kinds that definitions in the text put into namespaces, as "group/Kind".
func namespacedKinds(all []object) []string {
	var kinds []string
	for _, o := range all {
		if stringAt(o, "kind") == "CustomResourceDefinition" && stringAt(o, "spec", "scope") == "Namespaced" {
			kinds = append(kinds, stringAt(o, "spec", "group")+"/"+stringAt(o, "spec", "names", "kind"))
		}
	}

	return kinds
}

// namespaced reports whether the object lives in a namespace.
func namespaced(o object, defined []string) bool {
	group, _, grouped := strings.Cut(stringAt(o, "apiVersion"), "/")
	if !grouped {
		group = ""
	}
	kind := stringAt(o, "kind")
	if slices.Contains(defined, group+"/"+kind) {
		return true
	}
	own := !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") && !strings.HasSuffix(group, ".x-k8s.io") &&
		!slices.Contains([]string{"snapshot.storage.k8s.io", "gateway.networking.k8s.io", "metrics.k8s.io"}, group)

	return own && !slices.Contains(clusterKinds, kind)
}
