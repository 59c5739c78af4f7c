// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package scope

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

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

var (
	// numbers are parameters whose values are numbers.
	numbers = regexp.MustCompile(`^(vm\.|fs\.(inotify|file-max|nr_open|aio)|net\.netfilter\.nf_conntrack_max|` +
		`net\.core\.(somaxconn|[rw]mem_|netdev_max)|net\.ipv4\.ip_forward|kernel\.(panic|pid_max|threads-max))`)
	number = regexp.MustCompile(`^-?[0-9]+(\s+-?[0-9]+)*$`)
)

// Sysctls checks the kernel parameters of the cluster or of a node.
func (s *Scope) Sysctls(path string, parameters map[string]string) {
	KeysMatch(s, path, parameters, SysctlForm.MatchString, "is no kernel parameter such as vm.nr_hugepages")
	for _, name := range SortedKeys(parameters) {
		if message := SysctlProblem(name, parameters[name]); message != "" {
			s.Addf(check.Key(path, name), "%s", message)
		}
	}
}

// SysctlProblem returns what is wrong with the value of a kernel parameter; "" when nothing is.
func SysctlProblem(name, value string) string {
	name = strings.ReplaceAll(name, "/", ".")
	want, protected := kernelParameters[name]
	switch {
	case strings.TrimSpace(value) == "":
		return "has no value: write one, or remove it"
	case numbers.MatchString(name) && !number.MatchString(value):
		return fmt.Sprintf("is %q, and the kernel takes a number: write it without a unit", value)
	case protected && value != want:
		return fmt.Sprintf("is %s, and Talos's kubelet starts only with %s: remove it", value, want)
	case slices.Contains(forwarding, name) && value == "0":
		return "is 0, and pods would reach nothing: remove it"
	default:
		return ""
	}
}
