// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kubernetes

import (
	"fmt"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// releaseType returns the type of a Release's inputs. Importing the SDK's package of it would compile every
// kind of Kubernetes; a test holds this against the SDK's source instead.
func releaseType() *bridge.Type {
	text, flag, number := &bridge.Type{Kind: bridge.String}, &bridge.Type{Kind: bridge.Bool}, &bridge.Type{Kind: bridge.Int}
	open := &bridge.Type{Kind: bridge.Map, Elem: &bridge.Type{Kind: bridge.Any}}

	opts := bridge.ObjectOf(map[string]*bridge.Type{
		"caFile": text, "certFile": text, "keyFile": text, "password": text, "repo": text, "username": text,
	})

	t := bridge.ObjectOf(map[string]*bridge.Type{
		"allowNullValues": flag, "atomic": flag, "chart": text, "cleanupOnFail": flag, "compat": text,
		"createNamespace": flag, "dependencyUpdate": flag, "description": text, "devel": flag,
		"disableCRDHooks": flag, "disableOpenapiValidation": flag, "disableWebhooks": flag, "forceUpdate": flag,
		"keyring": text, "lint": flag, "manifest": open, "maxHistory": number, "name": text, "namespace": text,
		"postrender": text, "recreatePods": flag, "renderSubchartNotes": flag, "replace": flag,
		"repositoryOpts": opts, "resetValues": flag, "resourceNames": open, "reuseValues": flag, "skipAwait": flag,
		"skipCrds": flag, "takeOwnership": flag, "timeout": number,
		"valueYamlFiles": {Kind: bridge.List, Elem: &bridge.Type{Kind: bridge.Any}},
		"values":         open, "verify": flag, "version": text, "waitForJobs": flag,
	})

	return t.Requiring("chart")
}

// ReleaseInputs names the inputs that a Helm release takes, sorted.
func ReleaseInputs() []string {
	var names []string
	for _, f := range releaseType().Fields {
		names = append(names, f.Name)
	}

	return names
}

// decoded returns inputs as the plugin reads them: it takes keys that it does not know, drops lists without
// members from the values, and completes the repository's options.
func decoded(news resource.PropertyMap) (resource.PropertyMap, error) {
	t, in := releaseType(), news.Copy()
	for key := range in {
		if _, known := t.Field(string(key)); !known {
			delete(in, key)
		}
	}
	for _, key := range in.StableKeys() {
		f, _ := t.Field(string(key))
		if wrong := mismatch(string(key), f.Type, opened(in[key])); wrong != "" {
			return nil, fmt.Errorf("decoding failure: 1 error(s) decoding:\n\n* %s", wrong)
		}
	}
	if v, have := in["values"]; have {
		in["values"] = withoutEmptyLists(v)
	}
	if o := opened(in["repositoryOpts"]); o.IsObject() {
		options := o.ObjectValue().Copy()
		for _, key := range []resource.PropertyKey{"caFile", "certFile", "keyFile", "password", "repo", "username"} {
			if _, have := options[key]; !have {
				options[key] = resource.NewProperty("")
			}
		}
		in["repositoryOpts"] = resource.NewProperty(options)
	}

	return in, nil
}

// mismatch says what is wrong with the type of an input, "" where nothing is.
func mismatch(key string, t *bridge.Type, v resource.PropertyValue) string {
	name := strings.ToUpper(key[:1]) + key[1:]
	switch {
	case v.IsNull(), v.IsComputed(), v.IsOutput():
		return ""
	case t.Kind == bridge.Map && !v.IsObject():
		return fmt.Sprintf("'%s' expected a map, got '%s'", name, v.TypeString())
	case t.Kind == bridge.String && v.IsNumber():
		return fmt.Sprintf("'%s' expected type 'string', got unconvertible type 'float64', value: '%v'", name, v.NumberValue())
	case t.Kind == bridge.String && !v.IsString():
		return fmt.Sprintf("'%s' expected type 'string', got unconvertible type '%s'", name, v.TypeString())
	}

	return ""
}

func withoutEmptyLists(v resource.PropertyValue) resource.PropertyValue {
	switch {
	case v.IsSecret():
		return resource.MakeSecret(withoutEmptyLists(v.SecretValue().Element))
	case v.IsObject():
		kept := resource.PropertyMap{}
		for key, e := range v.ObjectValue() {
			if o := opened(e); !o.IsArray() || len(o.ArrayValue()) > 0 {
				kept[key] = withoutEmptyLists(e)
			}
		}

		return resource.NewProperty(kept)
	}

	return v
}
