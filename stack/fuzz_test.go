// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack_test

import (
	"errors"
	"testing"

	"github.com/talos-proxmox/talos-proxmox/spec"
	"github.com/talos-proxmox/talos-proxmox/stack"
)

// FuzzDecode gives every key any text: the answer is a stack or a list of problems, never a panic.
func FuzzDecode(f *testing.F) {
	for _, path := range shipped {
		s := source(f, read(f, path))
		for key, value := range s.Values {
			f.Add(key, value, true)
		}
	}
	f.Add("talos-proxmox:nodes", `{"a":{"role":"worker","networks":{"lan":{"address":"10.0.0.1/0"}}}}`, false)
	f.Add("talos-proxmox:cluster", `{"name":"x","vip":"::1","podSubnets":["::/0"]}`, false)
	f.Fuzz(func(t *testing.T, key, value string, onBase bool) {
		s := stack.Source{Stack: "fuzz", Values: map[string]string{}}
		if onBase {
			s = source(t, read(t, "testdata/base.yaml"))
		}
		s.Values[key] = value
		s.SecretKeys = append(s.SecretKeys, key)
		mustAnswer(t, s)
	})
}

// FuzzExpand gives the parts of a cluster any text and number.
func FuzzExpand(f *testing.F) {
	f.Add("talos-cp", 3, 1, "10.0.0.11/24", "pve1", 8192, "scsi", 1)
	f.Add("", -1, 1000000, "fd00::1/127", "", 0, "virtio", 31)
	f.Fuzz(func(t *testing.T, name string, count, first int, address, host string, memory int, bus string, unit int) {
		pool := map[string]any{
			"role": "worker", "count": count % 200, "first": first, "prefix": name, "hosts": []string{host, "pve2"}, "memory": memory,
			"networks": map[string]any{"lan": map[string]any{"address": address, "gateway": address}},
			"disks":    map[string]any{name: map[string]any{"type": bus, "unitNumber": unit, "size": memory}},
		}
		member := map[string]any{"networks": map[string]any{"lan": map[string]any{"address": address, "subnet": address}}}
		config := map[string]any{
			"cluster": map[string]any{"name": name, "vip": address, "vmIdBase": count},
			"pools":   map[string]any{"a": pool, name: map[string]any{"role": "controlplane", "members": []any{member}}},
			"nodes":   map[string]any{name: map[string]any{"role": "controlplane", "host": host}},
			"proxmox": map[string]any{"hosts": map[string]any{host: map[string]any{}}},
		}
		s := stack.Source{Stack: "fuzz", Values: map[string]string{}}
		for key, value := range config {
			s.Values[stack.Project+":"+key] = encoded(t, value)
		}
		mustAnswer(t, s)
	})
}

// mustAnswer demands a stack or problems.
func mustAnswer(t *testing.T, s stack.Source) {
	t.Helper()
	loaded, err := stack.Load(s)
	var invalid *spec.InvalidError
	switch {
	case err == nil && len(loaded.Nodes) == 0:
		t.Fatal("a stack without nodes was accepted")
	case err != nil && !errors.As(err, &invalid):
		t.Fatalf("not a list of problems: %v", err)
	case err != nil && len(invalid.Problems) == 0:
		t.Fatal("an error without a problem")
	}
}
