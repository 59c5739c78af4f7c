// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package scope

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
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

// mostOf are the highest values of parameters whose range is short.
var mostOf = map[string]int{"vm.swappiness": 200, "vm.overcommit_memory": 2, "vm.dirty_ratio": 100, "vm.dirty_background_ratio": 100}

// wellKnown are parameters that people set, to see when one is misspelt.
var wellKnown = []string{
	"vm.swappiness", "vm.max_map_count", "vm.nr_hugepages", "vm.dirty_ratio", "vm.dirty_background_ratio", "vm.overcommit_memory",
	"vm.overcommit_ratio", "vm.overcommit_kbytes", "vm.vfs_cache_pressure", "vm.min_free_kbytes", "vm.nr_overcommit_hugepages", "fs.file-max",
	"fs.nr_open", "fs.aio-max-nr", "fs.inotify.max_user_watches", "fs.inotify.max_user_instances", "fs.inotify.max_queued_events",
	"net.core.somaxconn", "net.core.rmem_max", "net.core.wmem_max", "net.core.rmem_default", "net.core.wmem_default",
	"net.core.netdev_max_backlog", "net.core.bpf_jit_harden", "net.core.bpf_jit_enable", "net.ipv4.ip_forward",
	"net.ipv4.ip_local_port_range", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_max_syn_backlog", "net.ipv4.tcp_tw_reuse",
	"net.ipv4.tcp_mem", "net.ipv4.udp_mem", "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_fin_timeout",
	"net.ipv4.neigh.default.gc_thresh1", "net.ipv4.neigh.default.gc_thresh2", "net.ipv4.neigh.default.gc_thresh3",
	"net.netfilter.nf_conntrack_max", "kernel.pid_max", "kernel.threads-max", "user.max_user_namespaces", "kernel.panic",
	"kernel.panic_on_oops", "vm.panic_on_oom",
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
	highest, bounded := mostOf[name]
	switch n, err := strconv.Atoi(value); {
	case bounded && err == nil && (n < 0 || n > highest):
		return fmt.Sprintf("is %d, and the kernel takes 0 to %d: write one of those", n, highest)
	case slipOf(name) != "":
		return fmt.Sprintf("is a parameter that no kernel has; did you mean %q?", slipOf(name))
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

// slipOf returns the well-known parameter that differs from a name by one letter more or less, or by two that are swapped; "" where
// there is none. Other differences may make another parameter.
func slipOf(name string) string {
	if slices.Contains(wellKnown, name) {
		return ""
	}
	for _, known := range wellKnown {
		if lacksOne(name, known) || lacksOne(known, name) || swapped(name, known) {
			return known
		}
	}

	return ""
}

// lacksOne reports whether a text is another one without one of its letters.
func lacksOne(text, whole string) bool {
	if len(text)+1 != len(whole) {
		return false
	}
	for i := range whole {
		if whole[:i]+whole[i+1:] == text {
			return true
		}
	}

	return false
}

// swapped reports whether two texts differ by two neighbouring letters that are swapped.
func swapped(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) - 1 {
		if a[i] != b[i] {
			return a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
		}
	}

	return false
}
