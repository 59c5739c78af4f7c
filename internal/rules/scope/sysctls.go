// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package scope

import (
	"slices"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
)

// kernelParameters are those with which the kubelet refuses to start when they differ, since Talos has it protect them.
var kernelParameters = map[string]string{
	"vm.overcommit_memory": "1", "vm.panic_on_oom": "0", "kernel.panic": "10", "kernel.panic_on_oops": "1",
	"kernel.keys.root_maxkeys": "1000000", "kernel.keys.root_maxbytes": "25000000",
}

// forwarding are parameters without which pods reach nothing.
var forwarding = []string{
	"net.ipv4.ip_forward", "net.ipv4.conf.all.forwarding", "net.bridge.bridge-nf-call-iptables", "net.bridge.bridge-nf-call-ip6tables",
}

// Sysctls checks the kernel parameters of the cluster or of a node.
func (s *Scope) Sysctls(path string, parameters map[string]string) {
	KeysMatch(s, path, parameters, SysctlForm.MatchString, "is no kernel parameter such as vm.nr_hugepages")
	for _, name := range SortedKeys(parameters) {
		at, value := check.Key(path, name), parameters[name]
		want, protected := kernelParameters[name]
		switch {
		case protected && value != want:
			s.Addf(at, "is %s, and Talos's kubelet starts only with %s: remove it", value, want)
		case slices.Contains(forwarding, name) && value == "0":
			s.Addf(at, "is 0, and pods would reach nothing: remove it")
		}
	}
}
