// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack

import (
	"encoding/json"
	"fmt"
)

// The variables in which Pulumi hands a program its project, stack and configuration.
const (
	projectVariable = "PULUMI_PROJECT"
	stackVariable   = "PULUMI_STACK"
	configVariable  = "PULUMI_CONFIG"
	secretsVariable = "PULUMI_CONFIG_SECRET_KEYS"
)

// FromEnvironment returns the configuration that Pulumi hands the program that it runs in dir, the project
// directory; lookup is [os.Getenv].
func FromEnvironment(lookup func(name string) string, dir string) (Source, error) {
	s := Source{Project: lookup(projectVariable), Stack: lookup(stackVariable), Dir: dir, Environment: lookup}
	for name, into := range map[string]any{configVariable: &s.Values, secretsVariable: &s.SecretKeys} {
		text := lookup(name)
		if text == "" {
			continue
		}
		if err := json.Unmarshal([]byte(text), into); err != nil {
			return s, fmt.Errorf("reading %s: %w", name, err)
		}
	}

	return s, nil
}
