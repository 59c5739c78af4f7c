// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kubelets

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Recording holds what genuine kubelets did, by scene.
type Recording struct {
	// From says how it came.
	From   string         `json:"from"`
	Scenes map[string]any `json:"scenes"`
}

// unimportant lists fields that say when and in which order, and no more.
var unimportant = []string{"managedFields", "uid", "resourceVersion", "creationTimestamp", "generation", "generateName"}

// varying is what differs from run to run and from machine to machine, and what stands for it.
var varying = []struct {
	pattern *regexp.Regexp
	text    string
}{
	{regexp.MustCompile(`^\d{4}-\d\d-\d\dT[\d:.]+Z$`), "<time>"},
	{regexp.MustCompile(`containerd://[0-9a-f]{64}`), "containerd://<id>"},
	{regexp.MustCompile(`containerd://v?\d[\w.+-]*`), "containerd://<version>"},
	{regexp.MustCompile(`sha256:[0-9a-f]{64}`), "sha256:<digest>"},
	{regexp.MustCompile(`10\.244\.\d+\.\d+/\d+`), "<network of pods>"},
	{regexp.MustCompile(`10\.244\.\d+\.\d+`), "<pod>"},
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "<id>"},
	{regexp.MustCompile(`^[0-9a-f]{32}$`), "<hash>"},
	{regexp.MustCompile(`kube-api-access-[a-z0-9]{5}`), "kube-api-access-<id>"},
}

// ofTheMachine lists fields whose values are the machine's, or the versions', by the end of their path.
var ofTheMachine = []string{
	"nodeInfo/bootID", "nodeInfo/kernelVersion", "nodeInfo/kubeletVersion", "nodeInfo/machineID", "nodeInfo/systemUUID",
	"capacity/*", "allocatable/*", "nodeInfo/swap/*", "spec/username", "images/*", "images/*/*", "images/*/names/*",
}

// Normalize returns what was watched as JSON has it, without what differs from run to run.
func Normalize(watched any) (any, error) {
	content, err := json.Marshal(watched)
	if err != nil {
		return nil, fmt.Errorf("writing what was watched: %w", err)
	}
	var tree any
	if err := json.Unmarshal(content, &tree); err != nil {
		return nil, fmt.Errorf("reading what was watched: %w", err)
	}

	return normal(tree, ""), nil
}

func normal(value any, at string) any {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range unimportant {
			delete(v, name)
		}
		for name, inner := range v {
			v[name] = normal(inner, path.Join(at, name))
		}
	case []any:
		for i, inner := range v {
			v[i] = normal(inner, path.Join(at, nameOf(inner, i)))
		}
		if strings.HasSuffix(at, "images") {
			return "<images>"
		}
		if _, ok := keyOf(firstOf(v)); ok {
			slices.SortFunc(v, func(a, b any) int { return strings.Compare(nameOf(a, 0), nameOf(b, 0)) })
		} else if _, ok := firstOf(v).(map[string]any); ok {
			slices.SortFunc(v, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
	case string:
		for _, p := range ofTheMachine {
			if matches(p, at) {
				return "<of the machine>"
			}
		}
		for _, p := range varying {
			v = p.pattern.ReplaceAllString(v, p.text)
		}

		return v
	}

	return value
}

func firstOf(list []any) any {
	if len(list) == 0 {
		return nil
	}

	return list[0]
}

// keyOf returns what tells an object of a list from the others.
func keyOf(value any) (string, bool) {
	object, ok := value.(map[string]any)
	if !ok {
		return "", false
	}
	if inner, ok := object["metadata"].(map[string]any); ok {
		object = inner
	}
	for _, name := range []string{"name", "type", "key", "mountPath", "ip"} {
		if key, ok := object[name].(string); ok {
			return key, key != "<name>"
		}
	}

	return "", false
}

func nameOf(value any, index int) string {
	if key, ok := keyOf(value); ok {
		return "[" + strings.ReplaceAll(key, "/", "|") + "]"
	}

	return fmt.Sprintf("[%d]", index)
}

// matches reports whether a path ends as a pattern does.
func matches(pattern, at string) bool {
	parts, wanted := strings.Split(at, "/"), strings.Split(pattern, "/")
	if len(parts) < len(wanted) {
		return false
	}
	parts = parts[len(parts)-len(wanted):]
	for i, w := range wanted {
		if ok, err := path.Match(w, parts[i]); err != nil || !ok {
			return false
		}
	}

	return true
}

// leaves returns every value by its path.
func leaves(value any, at string, into map[string]string) {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			leaves(inner, at+"/"+strings.ReplaceAll(name, "/", "|"), into)
		}
		if len(v) == 0 {
			into[at] = "{}"
		}
	case []any:
		for i, inner := range v {
			leaves(inner, at+"/"+nameOf(inner, i), into)
		}
		if len(v) == 0 {
			into[at] = "[]"
		}
	default:
		into[at] = fmt.Sprint(v)
	}
}

// Difference describes a value that is another.
type Difference struct{ Path, Want, Got string }

// none stands for a value that is not there.
const none = "nothing"

// Compare returns which values differ, and how many there are in all.
func Compare(want, got any) ([]Difference, int) {
	w, g := map[string]string{}, map[string]string{}
	leaves(want, "", w)
	leaves(got, "", g)
	all := maps.Clone(w)
	maps.Copy(all, g)
	var differences []Difference
	for _, at := range slices.Sorted(maps.Keys(all)) {
		wanted, have := none, none
		if v, ok := w[at]; ok {
			wanted = v
		}
		if v, ok := g[at]; ok {
			have = v
		}
		if wanted != have {
			differences = append(differences, Difference{Path: strings.TrimPrefix(at, "/"), Want: wanted, Got: have})
		}
	}

	return differences, len(all)
}

// Reasons hold, by scene and by the beginning of a path, why values may differ. "all" stands for every scene.
type Reasons map[string]map[string]string

// ReadReasons reads reasons in YAML.
func ReadReasons(content []byte) (Reasons, error) {
	var all Reasons
	if err := yaml.Unmarshal(content, &all); err != nil {
		return nil, fmt.Errorf("reading the accepted differences: %w", err)
	}

	return all, nil
}

// Why returns why a value of a scene may differ, "" when it may not. A path may have "*" in place of a part.
func (r Reasons) Why(scene, at string) string {
	for _, name := range []string{scene, "all"} {
		for pattern, why := range r[name] {
			parts := strings.Split(at, "/")
			if count := strings.Count(pattern, "/") + 1; count <= len(parts) && matches(pattern, strings.Join(parts[:count], "/")) {
				return why
			}
		}
	}

	return ""
}

// Version is that of the kubelet whose deeds are kept.
const Version = "v1.37.2"

var (
	//go:embed kubelet-v1.37.2.json
	recorded []byte
	//go:embed accepted.yaml
	accepted []byte
)

// Recorded returns what is kept of genuine kubelets, and why the lab's may do otherwise.
func Recorded() (Recording, Reasons, error) {
	var kept Recording
	if err := json.Unmarshal(recorded, &kept); err != nil {
		return kept, nil, fmt.Errorf("reading what kubelets did: %w", err)
	}
	reasons, err := ReadReasons(accepted)

	return kept, reasons, err
}
