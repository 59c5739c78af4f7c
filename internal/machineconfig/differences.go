// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"go.yaml.in/yaml/v3"
)

// hidden is shown in place of secret values.
const hidden = "(not shown)"

// Differences returns what differs between two machine configurations, one line for each setting with its
// path: what was applied, and what a node has. Values that are secret, or may be, are not shown.
func Differences(applied, has []byte) ([]string, error) {
	a, aShown, err := settings(applied)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration that was applied: %w", err)
	}
	h, hShown, err := settings(has)
	if err != nil {
		return nil, fmt.Errorf("reading the node's configuration: %w", err)
	}
	paths := map[string]bool{}
	for path := range a {
		paths[path] = true
	}
	for path := range h {
		paths[path] = true
	}

	var found []string
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		was, before := a[path]
		is, after := h[path]
		switch {
		case !before:
			found = append(found, fmt.Sprintf("%s was added: %s", path, hShown[path]))
		case !after:
			found = append(found, fmt.Sprintf("%s was removed; it was %s", path, aShown[path]))
		case was != is:
			found = append(found, fmt.Sprintf("%s is %s; it was %s", path, hShown[path], aShown[path]))
		}
	}

	return found, nil
}

// settings returns a configuration's values by path, as they are and as they may be shown.
func settings(data []byte) (values, shown map[string]string, err error) {
	provider, err := configloader.NewFromBytes(data)
	if err != nil {
		return nil, nil, err
	}
	if values, err = flat(provider); err != nil {
		return nil, nil, err
	}
	if shown, err = flat(provider.RedactSecrets(hidden)); err != nil {
		return nil, nil, err
	}
	for path, value := range shown {
		if mayBeSecret(path, value) {
			shown[path] = hidden
		}
	}

	return values, shown, nil
}

// flat returns all values of a configuration's documents by path.
func flat(provider config.Provider) (map[string]string, error) {
	data, err := provider.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc map[string]any
		if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
			return values, nil
		} else if err != nil {
			return nil, err
		}
		prefix := ""
		if kind, ok := doc["kind"].(string); ok {
			prefix = kind
			if name, ok := doc["name"].(string); ok {
				prefix += "/" + name
			}
			prefix += " "
		}
		spread(prefix, doc, values)
	}
}

func spread(path string, value any, into map[string]string) {
	switch v := value.(type) {
	case map[string]any:
		for key, element := range v {
			at := path
			if at != "" && !strings.HasSuffix(at, " ") {
				at += "."
			}
			spread(at+key, element, into)
		}
		if len(v) == 0 {
			into[path] = "{}"
		}
	case []any:
		for i, element := range v {
			spread(fmt.Sprintf("%s[%d]", path, i), element, into)
		}
		if len(v) == 0 {
			into[path] = "[]"
		}
	default:
		into[path] = fmt.Sprint(v)
	}
}

// mayBeSecret reports whether a value may hold a secret that Talos does not know as one: whole files and
// manifests, environments, headers, passwords in URLs.
func mayBeSecret(path, value string) bool {
	for _, part := range []string{"env.", "environment", "files[", "inlineManifests[", "Headers.", "configFiles[", "passphrase",
		"auth", "extraArgs"} {
		if strings.Contains(path, part) && !strings.HasSuffix(path, ".name") && !strings.HasSuffix(path, ".path") {
			return true
		}
	}

	return strings.ContainsAny(value, "\n") || len(value) > 120 || strings.Contains(value, "://") && strings.Contains(value, "@")
}
