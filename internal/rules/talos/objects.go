// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"fmt"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/kubelet"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// kubeletConfiguration checks fields of the KubeletConfiguration as a node does: each must exist, and Talos keeps some
// to itself.
func (r *rules) kubeletConfiguration(path string, text spec.Text) {
	var fields map[string]any
	if yaml.Unmarshal([]byte(text), &fields) != nil || fields == nil {
		r.Addf(path, "is not a block of KubeletConfiguration fields: write YAML")

		return
	}
	for _, name := range kubelet.ProtectedConfigurationFields {
		if _, set := fields[name]; set {
			r.Addf(check.Key(path, name), "is a field that Talos sets itself: remove it")
			delete(fields, name)
		}
	}
	for _, name := range scope.SortedKeys(fields) {
		r.kubeletField(path, name, fields[name])
	}
	r.kubeletValues(path, fields)
}

// kubeletField decodes one field of the KubeletConfiguration.
func (r *rules) kubeletField(path, name string, value any) {
	field, _ := plain(map[string]any{name: value}).(map[string]any)
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(field, &kubeletconfig.KubeletConfiguration{}, true)
	if err == nil {
		return
	}
	strict, ok := runtime.AsStrictDecodingError(err)
	if !ok {
		r.Addf(check.Key(path, name), "has a value of another type than the KubeletConfiguration's: %s", err)

		return
	}
	for _, e := range strict.Errors() {
		if unknown, ok := strings.CutPrefix(e.Error(), "unknown field "); ok {
			unknown = strings.Trim(unknown, `"`)
			r.Addf(check.Join(path, unknown), "is not a field of the KubeletConfiguration%s", r.nearestField(unknown))
		} else {
			r.Addf(check.Key(path, name), "%s", e)
		}
	}
}

// KubeletFieldProblem returns what is wrong with a field of the KubeletConfiguration by itself; "" when nothing is.
func KubeletFieldProblem(name string, value any) string {
	var l check.List
	r := &rules{&scope.Scope{List: &l}}
	r.kubeletField("", name, value)
	for _, p := range l.Problems() {
		return p.Message
	}

	return ""
}

// nearestField returns a hint at the field of the KubeletConfiguration that was probably meant.
func (r *rules) nearestField(name string) string {
	known, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&kubeletconfig.KubeletConfiguration{})
	if err != nil {
		return ""
	}
	names := append(scope.SortedKeys(known), kubeletFields...)
	if best := check.Nearest(name, names); best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}

	return ": remove it"
}

// kubeletFields are those that are often set, and that an empty configuration does not show.
var kubeletFields = []string{
	"maxPods", "podPidsLimit", "evictionHard", "evictionSoft", "evictionSoftGracePeriod", "systemReserved", "kubeReserved",
	"featureGates", "imageGCHighThresholdPercent", "imageGCLowThresholdPercent", "serializeImagePulls", "maxParallelImagePulls",
	"registryPullQPS", "registryBurst", "allowedUnsafeSysctls", "cpuManagerPolicy", "topologyManagerPolicy", "memoryManagerPolicy",
	"reservedSystemCPUs", "containerLogMaxSize", "containerLogMaxFiles", "failSwapOn", "kubeAPIQPS", "kubeAPIBurst",
}

// plain returns a tree with the kinds of numbers that Kubernetes' decoder takes.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[key] = plain(value)
		}

		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, value := range v {
			out = append(out, plain(value))
		}

		return out
	case int:
		return int64(v)
	default:
		return v
	}
}

// object holds what every Kubernetes object says of itself.
type object struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
}

// auditPolicy checks the API server's audit policy: with one that it cannot read it does not start.
func (r *rules) auditPolicy(path string, text spec.Text) {
	var policy struct {
		object `yaml:",inline"`
		Rules  []struct {
			Level string `yaml:"level"`
		} `yaml:"rules"`
	}
	if !scope.IsYAMLMap(text) || yaml.Unmarshal([]byte(text), &policy) != nil || policy.Kind != "Policy" ||
		policy.APIVersion != "audit.k8s.io/v1" {
		r.Addf(path, "is not an audit policy: write YAML of kind Policy, apiVersion audit.k8s.io/v1")

		return
	}
	if len(policy.Rules) == 0 {
		r.Addf(path, "has no rules, and the API server would log nothing: add at least one, such as level: Metadata")
	}
	levels := []string{"None", "Metadata", "Request", "RequestResponse"}
	for i, rule := range policy.Rules {
		if !slices.Contains(levels, rule.Level) {
			r.Addf(check.Index(path+".rules", i)+".level", "%s", scope.NotOneOf(rule.Level, levels))
		}
	}
	r.auditFields(path, text)
}

// admissionKinds are the configurations that admission plugins take, by plugin.
var admissionKinds = map[string]object{
	"PodSecurity":                {"pod-security.admission.config.k8s.io/v1", "PodSecurityConfiguration"},
	"EventRateLimit":             {"eventratelimit.admission.k8s.io/v1alpha1", "Configuration"},
	"ResourceQuota":              {"apiserver.config.k8s.io/v1", "ResourceQuotaConfiguration"},
	"PodTolerationRestriction":   {"podtolerationrestriction.admission.k8s.io/v1alpha1", "Configuration"},
	"ValidatingAdmissionWebhook": {"apiserver.config.k8s.io/v1", "WebhookAdmissionConfiguration"},
	"MutatingAdmissionWebhook":   {"apiserver.config.k8s.io/v1", "WebhookAdmissionConfiguration"},
	"ImagePolicyWebhook":         {},
	"PodNodeSelector":            {},
}

// admission checks the configuration of an admission plugin.
func (r *rules) admission(name string, text spec.Text) {
	at := check.Key("kubernetes.apiServer.admissionPlugins", name)
	want, known := admissionKinds[name]
	var is struct {
		object   `yaml:",inline"`
		Defaults map[string]string `yaml:"defaults"`
	}
	switch {
	case !known:
		r.Addf(at, "%s", scope.NotOneOf(name, scope.SortedKeys(admissionKinds)))
	case !scope.IsYAMLMap(text):
		r.Addf(at, "is not the configuration of an admission plugin: write YAML")
	case yaml.Unmarshal([]byte(text), &is) != nil || want.Kind != "" && is.object != want:
		r.Addf(at, "is not the configuration of %s: write kind %s, apiVersion %s", name, want.Kind, want.APIVersion)
	case name == "PodSecurity":
		r.podSecurity(at, text)
		levels := []string{"privileged", "baseline", "restricted"}
		for _, key := range []string{"enforce", "audit", "warn"} {
			if level := is.Defaults[key]; level != "" && !slices.Contains(levels, level) {
				r.Addf(check.Join(at, "defaults", key), "%s", scope.NotOneOf(level, levels))
			}
		}
	}
}
