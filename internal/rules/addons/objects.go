// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package addons

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
	"golang.org/x/net/http/httpguts"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// nameForm is what every object's name has to be; some kinds ask for more.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.:_-]{0,251}[A-Za-z0-9])?$`)

// lowerKinds are kinds whose names are names of domains.
var lowerKinds = map[string]bool{
	"ConfigMap": true, "Secret": true, "Namespace": true, "Service": true, "ServiceAccount": true, "Deployment": true, "DaemonSet": true,
	"StatefulSet": true, "Pod": true, "Job": true, "CronJob": true, "Ingress": true, "PersistentVolumeClaim": true, "StorageClass": true,
}

// textBlocks lists blocks whose values Kubernetes takes as text alone, by kind.
var textBlocks = map[string][]string{"ConfigMap": {"data", "binaryData"}, "Secret": {"data", "stringData"}}

// notText returns the first key of a block whose value is not text; "" where there is none.
func notText(block any) string {
	values, _ := block.(map[string]any)
	for _, key := range scope.SortedKeys(values) {
		if _, text := values[key].(string); !text && values[key] != nil {
			return key
		}
	}

	return ""
}

// objects checks the Kubernetes objects of a manifest; held are those of the manifests before.
func (r *rules) objects(at, text string, held map[string]string) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for number := 1; ; number++ {
		var o any
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			if number == 1 {
				r.Addf(at, "is empty: write Kubernetes objects, or remove it")
			}

			return
		}
		if err != nil {
			r.Addf(at, "is not YAML")

			return
		}
		if o == nil {
			continue
		}
		object, ok := o.(map[string]any)
		if !ok {
			r.Addf(at, "is no Kubernetes object but text or a list: write apiVersion, kind and metadata")

			return
		}
		if message := r.object(at, object, held); message != "" {
			r.Addf(at, "object %d %s", number, message)
		}
	}
}

// object returns what is wrong with one object; "" when nothing is.
func (r *rules) object(at string, o map[string]any, held map[string]string) string {
	version, _ := o["apiVersion"].(string)
	kind, _ := o["kind"].(string)
	if version == "" || kind == "" {
		return "has no apiVersion or no kind: write both"
	}
	if strings.HasSuffix(kind, "List") {
		return ""
	}
	metadata, _ := o["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	if name == "" {
		return fmt.Sprintf("(%s) has no metadata.name, and Talos applies objects by name: write one", kind)
	}
	if !nameForm.MatchString(name) || lowerKinds[kind] && (name != strings.ToLower(name) || strings.ContainsAny(name, "_:")) {
		return fmt.Sprintf("(%s) has the name %q, which Kubernetes takes for none: use lower-case letters, digits, dashes and dots", kind, name)
	}
	for _, block := range textBlocks[kind] {
		if key := notText(o[block]); key != "" {
			return fmt.Sprintf("(%s %s) has a value of %s.%s that is not text, which Kubernetes refuses: put it in quotes", kind, name, block, key)
		}
	}
	namespace, _ := metadata["namespace"].(string)
	group, _, _ := strings.Cut(version, "/")
	id := strings.Join([]string{group, kind, namespace, name}, "/")
	if other, twice := held[id]; twice {
		return fmt.Sprintf("(%s %s) is in %s too: keep one of them", kind, name, other)
	}
	held[id] = at

	return ""
}

// objectsIn checks the objects of a file, in which no credential may stand in plain text.
func (r *rules) objectsIn(at, file string, held map[string]string) {
	if text, ok := r.PlainFile(at, file, "write the manifest inline, with that value as a secret"); ok {
		r.objects(at, text, held)
	}
}

// headers checks the headers that are sent with requests for manifests.
func (r *rules) headers(m spec.Manifests) {
	for name, value := range m.ExtraHeaders {
		at := check.Key("manifests.extraHeaders", name)
		if !httpguts.ValidHeaderFieldName(name) {
			r.Addf(at, "%q is no name of a header such as Authorization", name)
		} else if !httpguts.ValidHeaderFieldValue(value.Reveal()) {
			r.Addf(at, "is no value of a header: it holds a line break or another control character; remove it")
		}
	}
}
