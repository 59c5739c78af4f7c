// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package manifests_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

func BenchmarkCilium(b *testing.B) {
	dir, err := ciliumModule()
	if err != nil {
		b.Skip(err)
	}
	certificates, err := fixedCertificates()
	if err != nil {
		b.Fatal(err)
	}
	in := manifests.Input{Certificates: &certificates, Config: clusterConfig(func(c *spec.Config) {
		c.CNI.Name = spec.Ptr("cilium")
		c.CNI.Cilium = &spec.Cilium{Chart: spec.Chart{Repository: spec.Ptr(filepath.Join(dir, "install", "kubernetes"))}}
	})}
	for b.Loop() {
		if _, err := manifests.DayZero(context.Background(), in); err != nil {
			b.Fatal(err)
		}
	}
}
