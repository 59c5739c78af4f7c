// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"fmt"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// onlyFields records keys of an object that its reader does not know, and without a word leaves out or does not start with.
func (r *rules) onlyFields(at string, object map[string]any, fields ...string) {
	for _, name := range scope.SortedKeys(object) {
		if slices.Contains(fields, name) {
			continue
		}
		hint := ": remove it"
		if best := check.Nearest(name, fields); best != "" {
			hint = fmt.Sprintf("; did you mean %q?", best)
		}
		r.Addf(check.Key(at, name), "is not a field that the API server knows%s", hint)
	}
}

// texts returns the texts in a list of any values.
func texts(v any) []string {
	list, _ := v.([]any)
	var all []string
	for _, e := range list {
		all = append(all, fmt.Sprint(e))
	}

	return all
}

// auditFields checks the fields of an audit policy and its stages.
func (r *rules) auditFields(at string, text spec.Text) {
	var policy map[string]any
	if yaml.Unmarshal([]byte(text), &policy) != nil {
		return // said already
	}
	r.onlyFields(at, policy, "apiVersion", "kind", "metadata", "rules", "omitStages", "omitManagedFields")
	r.stages(check.Join(at, "omitStages"), policy["omitStages"])
	rules, _ := policy["rules"].([]any)
	for i, rule := range rules {
		object, _ := rule.(map[string]any)
		here := check.Index(at+".rules", i)
		r.onlyFields(here, object, "level", "users", "userGroups", "verbs", "resources", "namespaces", "nonResourceURLs",
			"omitStages", "omitManagedFields")
		r.stages(check.Join(here, "omitStages"), object["omitStages"])
		resources, _ := object["resources"].([]any)
		for j, resource := range resources {
			fields, _ := resource.(map[string]any)
			r.onlyFields(check.Index(here+".resources", j), fields, "group", "resources", "resourceNames")
		}
	}
}

func (r *rules) stages(at string, list any) {
	stages := []string{"RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"}
	for i, stage := range texts(list) {
		if !slices.Contains(stages, stage) {
			r.Addf(check.Index(at, i), "%s", scope.NotOneOf(stage, stages))
		}
	}
}

// securityVersion is a version of the pod security standards.
var securityVersion = regexp.MustCompile(`^(latest|v1\.[0-9]+)$`)

// podSecurity checks the fields of pod security's configuration and its versions.
func (r *rules) podSecurity(at string, text spec.Text) {
	var object map[string]any
	if yaml.Unmarshal([]byte(text), &object) != nil {
		return // said already
	}
	r.onlyFields(at, object, "apiVersion", "kind", "defaults", "exemptions")
	defaults, _ := object["defaults"].(map[string]any)
	r.onlyFields(at+".defaults", defaults, "enforce", "enforce-version", "audit", "audit-version", "warn", "warn-version")
	for _, name := range []string{"enforce-version", "audit-version", "warn-version"} {
		if v, given := defaults[name]; given && !securityVersion.MatchString(fmt.Sprint(v)) {
			r.Addf(check.Key(at+".defaults", name), "is %v, and the API server takes latest or a minor version such as v1.35", v)
		}
	}
	exemptions, _ := object["exemptions"].(map[string]any)
	r.onlyFields(at+".exemptions", exemptions, "usernames", "namespaces", "runtimeClasses")
}
