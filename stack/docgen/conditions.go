// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package docgen

import (
	"reflect"
	"regexp"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// conditions are what the blocks of a type must have together, as far as JSON Schema can say it. Blocks that are put together from
// several places (defaults, sizes, pools, nodes) only say what excludes what.
var conditions = map[string]object{
	"Patch":      oneOf("inline", "file"),
	"Manifest":   oneOf("inline", "file"),
	"USB":        oneOf("mapping", "host"),
	"CiliumPool": {"oneOf": []any{required("start", "stop"), required("cidr")}},
	"GPU":        {"not": required("mapping", "devices")},
	"Encryption": {"allOf": []any{when("key", "kms", "kmsEndpoint"), when("key", "static", "passphrase")}},
	"GitAuth": {"allOf": []any{
		when("type", "ssh", "knownHosts"), when("type", "token", "password"), when("type", "basic", "password"),
		when("type", "githubApp", "githubApp"),
	}},
	"CNI": {
		"if":   required("cilium"),
		"then": object{"required": []string{"name"}, "properties": object{"name": object{"const": "cilium"}}},
	},
	"GitOps": {"allOf": []any{when("provider", "flux", "git", "chart"), when("provider", "argocd", "git", "chart")}},
	"Cluster": {
		"if":   object{"required": []string{"adopted"}, "properties": object{"adopted": object{"const": true}}},
		"then": required("secretsBundle"),
	},
	"Chart": {"dependencies": object{"username": []string{"password"}, "password": []string{"username"}}},
}

func required(names ...string) object { return object{"required": names} }

func oneOf(a, b string) object { return object{"oneOf": []any{required(a), required(b)}} }

// when demands settings where another one has a value.
func when(name, value string, names ...string) object {
	return object{"if": object{"required": []string{name}, "properties": object{name: object{"const": value}}}, "then": required(names...)}
}

// quotedExample is a value that a comment shows.
var quotedExample = regexp.MustCompile(`"([^"…<>*]+)"`)

// examples returns the values of a text that its comment shows.
func examples(f spec.Field, comment string) []any {
	t := f.Type
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.String || f.Enum != nil {
		return nil
	}
	var all []any
	for _, m := range quotedExample.FindAllStringSubmatch(comment, -1) {
		if strings.TrimSpace(m[1]) == "" {
			continue
		}
		if f.Type.Kind() == reflect.Slice {
			all = append(all, []any{m[1]})
		} else {
			all = append(all, m[1])
		}
	}

	return all
}
