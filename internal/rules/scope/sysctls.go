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
var mostOf = map[string]int{
	"vm.swappiness": 200, "vm.overcommit_memory": 2, "vm.dirty_ratio": 100, "vm.dirty_background_ratio": 100,
	"net.ipv4.conf.all.rp_filter": 2, "net.ipv4.conf.default.rp_filter": 2, "net.ipv6.conf.all.disable_ipv6": 1,
	"net.ipv6.conf.default.disable_ipv6": 1, "net.ipv4.tcp_syncookies": 2, "kernel.unprivileged_bpf_disabled": 2, "kernel.kptr_restrict": 2,
	"vm.nr_hugepages": 1 << 20, "vm.nr_overcommit_hugepages": 1 << 20,
}

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
	numbers = regexp.MustCompile(`^(vm\.|user\.max_|fs\.(inotify|file-max|nr_open|aio|protected_|suid_)|net\.netfilter\.nf_conntrack_|` +
		`net\.core\.(somaxconn|[rw]mem_|netdev_|bpf_jit_|busy_|optmem_)|net\.bridge\.|net\.unix\.|net\.ipv[46]\.(ip_|neigh\.|conf\..*\.` +
		`(rp_filter|forwarding|arp_|accept_|disable_|send_|secure_|log_|proxy_|src_|use_)|udp_|` +
		`tcp_([rw]mem|mem$|max_|tw_|keepalive_|fin_|syn|fack|sack|timestamps|window|slow_|mtu_|no_|ecn$|abort|orphan|notsent|limit))|` +
		`kernel\.(panic|pid_max|threads-max|unprivileged_|kptr_|dmesg_|perf_|sched_|sysrq|shm|msg|sem$|keys|randomize|yama|nmi_|numa_))`)
	// words are parameters that have a name each.
	words = regexp.MustCompile(`^net\.(core\.default_qdisc|ipv4\.tcp_congestion_control)$`)
	// places are parameters that have several numbers each.
	places = map[string]int{"net.ipv4.tcp_rmem": 3, "net.ipv4.tcp_wmem": 3, "net.ipv4.tcp_mem": 3, "net.ipv4.udp_mem": 3,
		"net.ipv4.ip_local_port_range": 2, "kernel.sem": 4}
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
	case valueProblem(name, value) != "":
		return valueProblem(name, value)
	case protected && value != want:
		return fmt.Sprintf("is %s, and Talos's kubelet starts only with %s: remove it", value, want)
	case slices.Contains(forwarding, name) && value == "0":
		return "is 0, and pods would reach nothing: remove it"
	default:
		return ""
	}
}

// valueProblem returns what is wrong with the form of a parameter's value; "" when nothing is.
func valueProblem(name, value string) string {
	given := strings.Fields(value)
	switch wanted := places[name]; {
	case len(given) == 0:
		return "has no value: write one, or remove it"
	case numbers.MatchString(name) && !number.MatchString(value):
		return fmt.Sprintf("is %q, and the kernel takes a number: write it without a unit", value)
	case words.MatchString(name) && len(given) != 1:
		return fmt.Sprintf("is %q, and the kernel takes one word: write such as fq or bbr", value)
	case wanted > 0 && len(given) != wanted:
		return fmt.Sprintf("has %d numbers, and the kernel takes %d: write them with blanks between them", len(given), wanted)
	case wanted > 0 && name != "kernel.sem" && !ascending(given):
		return "has numbers that fall: write the lowest first"
	default:
		return ""
	}
}

// ascending reports whether no number is lower than the one before it.
func ascending(numbers []string) bool {
	before := 0
	for _, text := range numbers {
		n, _ := strconv.Atoi(text)
		if n < before {
			return false
		}
		before = n
	}

	return true
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
