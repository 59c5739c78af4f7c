// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kubernetes

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// Annotations that steer the plugin; they are kept on the object.
const (
	annotationAutonamed   = "pulumi.com/autonamed"
	annotationSkipAwait   = "pulumi.com/skipAwait"
	annotationWaitFor     = "pulumi.com/waitFor"
	annotationTimeout     = "pulumi.com/timeoutSeconds"
	annotationPatchForce  = "pulumi.com/patchForce"
	annotationPropagation = "pulumi.com/deletionPropagationPolicy"
	annotationReplace     = "pulumi.com/replaceUnready"
)

// objectOf makes an API object of properties; secrets are opened, unknown values left out.
func objectOf(props resource.PropertyMap) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: jsonish(map[string]any(bridge.TreeOf(props))).(map[string]any)} // a map stays one
}

// jsonish makes whole numbers integers, as the API's types want them.
func jsonish(v any) any {
	switch x := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(x))
		for k, e := range x {
			m[k] = jsonish(e)
		}
		return m
	case []any:
		l := make([]any, len(x))
		for i, e := range x {
			l[i] = jsonish(e)
		}
		return l
	case float64:
		if x == float64(int64(x)) {
			return int64(x)
		}
	}

	return v
}

// propertiesOf makes properties of an API object.
func propertiesOf(u *unstructured.Unstructured) resource.PropertyMap {
	return resource.NewProperty(resource.NewPropertyMapFromMap(numbers(u.Object).(map[string]any))).ObjectValue() // a map stays one
}

func numbers(v any) any {
	switch x := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(x))
		for k, e := range x {
			m[k] = numbers(e)
		}
		return m
	case []any:
		l := make([]any, len(x))
		for i, e := range x {
			l[i] = numbers(e)
		}
		return l
	case int64:
		return float64(x)
	}

	return v
}

// outputsOf returns the state: the live object, secret where the inputs are, and the bookkeeping.
func outputsOf(live *unstructured.Unstructured, inputs resource.PropertyMap, manager string) resource.PropertyMap {
	out := propertiesOf(live)
	out[keyManager] = resource.NewProperty(manager)
	out[keyAPIVersion] = resource.NewProperty(live.GetAPIVersion())
	out = bridge.KeepSecrets(resource.NewProperty(out), resource.NewProperty(inputs)).ObjectValue()

	if live.GetKind() == "Secret" && live.GetAPIVersion() == "v1" {
		out = bridge.MarkSecrets(out, []string{"data", "stringData"})
	}

	return out
}

func idOf(u *unstructured.Unstructured) resource.ID {
	if ns := u.GetNamespace(); ns != "" {
		return resource.ID(ns + "/" + u.GetName())
	}

	return resource.ID(u.GetName())
}

// nameOf splits an id.
func nameOf(id resource.ID) (namespace, name string) {
	if ns, n, ok := strings.Cut(string(id), "/"); ok {
		return ns, n
	}

	return "", string(id)
}

// encodeStringData moves a Secret's stringData to data, which is what the API gives back.
func encodeStringData(props resource.PropertyMap) {
	text, ok := props["stringData"]
	if !ok || text.ContainsUnknowns() {
		return
	}
	delete(props, "stringData")

	whole := text.IsSecret()
	if whole {
		text = text.SecretValue().Element
	}
	if !text.IsObject() {
		if !text.IsNull() {
			props["data"] = text // it is not known yet
		}
		return
	}

	data := resource.PropertyMap{}
	if have := opened(props["data"]); have.IsObject() {
		data = have.ObjectValue().Copy()
		whole = whole || props["data"].IsSecret()
	}
	for k, v := range text.ObjectValue() {
		data[k] = encoded(v)
	}

	props["data"] = resource.NewProperty(data)
	if whole {
		props["data"] = resource.MakeSecret(props["data"])
	}
}

func opened(v resource.PropertyValue) resource.PropertyValue {
	for v.IsSecret() {
		v = v.SecretValue().Element
	}

	return v
}

func encoded(v resource.PropertyValue) resource.PropertyValue {
	switch {
	case v.IsSecret():
		return resource.MakeSecret(encoded(v.SecretValue().Element))
	case v.IsString():
		return resource.NewProperty(base64.StdEncoding.EncodeToString([]byte(v.StringValue())))
	}

	return v
}

// clusterScoped returns kinds without a namespace, for when the cluster cannot be asked.
func clusterScoped(kind string) bool {
	return slices.Contains([]string{
		"Namespace", "Node", "PersistentVolume", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition",
		"StorageClass", "PriorityClass", "RuntimeClass", "IngressClass", "APIService", "CSIDriver", "CSINode",
		"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy",
		"ValidatingAdmissionPolicyBinding", "VolumeAttachment", "FlowSchema", "PriorityLevelConfiguration",
		"CertificateSigningRequest", "ComponentStatus", "GatewayClass",
	}, kind)
}

func describe(u *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %q", u.GetKind(), idOf(u))
}
