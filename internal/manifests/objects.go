// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package manifests

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// object is a Kubernetes object, or a part of one.
type object = map[string]any

// list is a list in an object.
type list = []any

// mustYAML returns one YAML document with sorted keys. Objects that this package builds of text, numbers,
// maps and lists can always be written.
func mustYAML(o object) string {
	text, err := yaml.Marshal(o)
	if err != nil {
		return fmt.Sprintf("# not YAML: %v\n", err)
	}

	return "---\n" + string(text)
}

// objects returns the Kubernetes objects in a text of YAML documents. Errors never quote the text.
func objects(manifest string) ([]object, error) {
	decoder := yamlv3.NewDecoder(bytes.NewBufferString(manifest))
	var all []object
	for {
		var o object
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, errors.New("the manifest is not YAML objects: " + withoutValues(err.Error()))
		}
		if o == nil {
			continue
		}
		if stringAt(o, "apiVersion") == "" || stringAt(o, "kind") == "" {
			return nil, fmt.Errorf("object %d of the manifest has no apiVersion or no kind", len(all)+1)
		}
		all = append(all, o)
	}
}

var quotedValue = regexp.MustCompile("`[^`]*`|\"[^\"]*\"")

// withoutValues blots out what a message quotes.
func withoutValues(text string) string { return quotedValue.ReplaceAllString(text, "`…`") }

// valuesOf reads a chart's values.
func valuesOf(t *spec.Text) (object, error) {
	if t == nil {
		return object{}, nil
	}
	values := object{}
	if err := yaml.Unmarshal([]byte(*t), &values); err != nil {
		return nil, errors.New("the values are not a YAML object: " + withoutValues(err.Error()))
	}

	return values, nil
}

// MergeValues returns base with over laid onto it, key by key. A null stays, since Helm takes it as "without the
// chart's default".
func MergeValues(base, over object) object {
	merged := object{}
	for key, value := range base {
		merged[key] = value
	}
	for key, value := range over {
		below, isMap := value.(object)
		under, wasMap := merged[key].(object)
		if isMap && wasMap {
			merged[key] = MergeValues(under, below)

			continue
		}
		merged[key] = value
	}

	return merged
}

// stringAt returns the text at a path of keys, empty where there is none.
func stringAt(o object, path ...string) string {
	var at any = o
	for _, key := range path {
		m, ok := at.(object)
		if !ok {
			return ""
		}
		at = m[key]
	}
	text, _ := at.(string)

	return text
}
