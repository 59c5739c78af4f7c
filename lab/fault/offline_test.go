// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package fault_test

import (
	"testing"

	"github.com/talos-proxmox/talos-proxmox/lab/fault"
)

func TestOffline(t *testing.T) {
	s := fault.New(&told{}, nil)
	if s.CutOff("ghcr.io") {
		t.Error("without a fault everything answers")
	}
	if _, err := s.Add(fault.Offline, map[string]string{"but": "harbor.example.com,*.internal"}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"ghcr.io": true, "harbor.example.com": false, "Git.Internal": false, "10.0.0.1": false, "fd00::1": false,
	} {
		if got := s.CutOff(name); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	if _, err := s.Add(fault.Offline, map[string]string{"but": "["}); err == nil {
		t.Error("a pattern that is none is taken")
	}
}
