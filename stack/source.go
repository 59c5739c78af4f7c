// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
)

// SourceOf reads the text of a stack file without Pulumi. What is written secure is replaced by what open
// returns for its path, such as "proxmox.apiToken", and its encrypted text.
func SourceOf(name string, text []byte, open func(path, secure string) string) (Source, error) {
	var file struct {
		Config map[string]any `yaml:"config"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return Source{}, fmt.Errorf("reading stack %s: %w", name, err)
	}
	s := Source{Stack: name, Values: map[string]string{}}
	for key, value := range file.Config {
		_, path, _ := strings.Cut(key, ":")
		plain, secret := opened(path, value, open)
		if secret {
			s.SecretKeys = append(s.SecretKeys, key)
		}
		if word, ok := plain.(string); ok {
			s.Values[key] = word

			continue
		}
		encoded, err := json.Marshal(plain)
		if err != nil {
			return Source{}, fmt.Errorf("reading stack %s: %s: %w", name, key, err)
		}
		s.Values[key] = string(encoded)
	}

	return s, nil
}

// opened opens every secure value below a path, and reports whether there was one.
func opened(path string, v any, open func(path, secure string) string) (plain any, secret bool) {
	switch v := v.(type) {
	case map[string]any:
		if s, ok := v["secure"].(string); ok && len(v) == 1 {
			return open(path, s), true
		}
		out := map[string]any{}
		for key, value := range v {
			below, found := opened(check.Key(path, key), value, open)
			out[key], secret = below, secret || found
		}

		return out, secret
	case []any:
		out := make([]any, 0, len(v))
		for i, value := range v {
			below, found := opened(check.Index(path, i), value, open)
			out, secret = append(out, below), secret || found
		}

		return out, secret
	default:
		return v, false
	}
}
