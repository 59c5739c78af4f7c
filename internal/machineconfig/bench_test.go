// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig_test

import (
	"fmt"
	"testing"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// large returns a cluster of three control planes and that many workers.
func large(workers int) machineconfig.Input {
	return input(cluster("v1.12.4", "v1.35.0", func(c *spec.Config) {
		c.Nodes = c.Nodes[:3]
		for i := range workers {
			c.Nodes = append(c.Nodes, node(fmt.Sprintf("work-%03d", i), spec.Worker, fmt.Sprintf("192.168.%d.%d/16", 64+i/200, 1+i%200)))
		}
		c.Talos.Patches.All = inline("machine:\n  sysctls:\n    vm.swappiness: \"1\"\n")
	}))
}

func BenchmarkCheck(b *testing.B) {
	for _, workers := range []int{3, 30, 300} {
		in := large(workers)
		b.Run(fmt.Sprint(workers), func(b *testing.B) {
			for b.Loop() {
				var l check.List
				machineconfig.Check(in, &l)
				if err := l.Err("bench"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRender(b *testing.B) {
	in, secrets := large(300), fixedSecrets()
	for _, node := range []string{"cp-1", "work-007"} {
		b.Run(node, func(b *testing.B) {
			for b.Loop() {
				if _, err := machineconfig.Render(in, node, secrets); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
