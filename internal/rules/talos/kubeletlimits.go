// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// beyond reports whether a text is a number below 0 or above the most.
func beyond(text string, most float64) bool {
	n, err := strconv.ParseFloat(text, 64)

	return err == nil && (n < 0 || n > most)
}

// rates lists fields of which the kubelet takes no number below 0.
var rates = []string{"registryPullQPS", "registryBurst", "eventRecordQPS", "eventBurst", "kubeAPIQPS", "kubeAPIBurst"}

// ownPorts lists fields with ports, and those at which the kubelet listens by itself.
var ownPorts = map[string]int{"port": 10250, "healthzPort": 10248, "readOnlyPort": 0}

// namespacedSysctls begin the parameters that a pod may have for itself.
var namespacedSysctls = []string{"kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.", "net."}

// kubeletLimits checks numbers that the kubelet checks when it starts, and those that nodes must have.
func (r *rules) kubeletLimits(path string, fields map[string]any) {
	for _, name := range rates {
		if n, ok := fields[name].(int); ok && n < 0 {
			r.Addf(check.Key(path, name), "is %d, and the kubelet takes no number below 0: raise it", n)
		}
	}
	r.kubeletPorts(path, fields)
	if fields["memoryManagerPolicy"] == "Static" && fields["reservedMemory"] == nil {
		r.Addf(path+".memoryManagerPolicy", "is Static, for which the kubelet must be told what each NUMA node keeps: add reservedMemory")
	}
	unsafe, _ := fields["allowedUnsafeSysctls"].([]any)
	for i, entry := range unsafe {
		name := strings.ReplaceAll(fmt.Sprint(entry), "/", ".")
		if !slices.ContainsFunc(namespacedSysctls, func(p string) bool { return strings.HasPrefix(name, p) }) {
			r.Addf(check.Index(path+".allowedUnsafeSysctls", i),
				"%q is no parameter that a pod may have for itself, and the kubelet does not start: "+
					"write such as net.core.somaxconn or kernel.msg*", name)
		}
	}
	r.kept(path, fields)
}

// kubeletPorts checks the ports at which the kubelet listens.
func (r *rules) kubeletPorts(path string, fields map[string]any) {
	taken := map[int]string{}
	for _, name := range scope.SortedKeys(ownPorts) {
		port, given := fields[name].(int)
		if !given {
			port = ownPorts[name]
		}
		other := taken[port]
		switch at := check.Key(path, name); {
		case given && (port < 0 || port > 65535):
			r.Addf(at, "%d is no port: write a number up to 65535", port)
		case given && port != 0 && (other != "" || takenPorts[port] != "" && port != ownPorts[name]):
			if other == "" {
				other = takenPorts[port]
			}
			r.Addf(at, "%d is the port of %s: choose another", port, other)
		}
		if port != 0 {
			taken[port] = "the kubelet's " + name
		}
	}
}

// kept checks that what is kept from pods leaves something of the smallest node.
func (r *rules) kept(path string, fields map[string]any) {
	least, cores, small, few := spec.MiB(0), 0, "", ""
	for _, n := range r.Config.Nodes {
		if small == "" || *n.Memory < least {
			least, small = *n.Memory, n.Name
		}
		if c := *n.CPU * *n.Sockets; few == "" || c < cores {
			cores, few = c, n.Name
		}
	}
	if small == "" {
		return
	}
	for block, name := range map[string]string{
		"systemReserved": "memory", "kubeReserved": "memory", "evictionHard": "memory.available", "evictionSoft": "memory.available",
	} {
		amounts, _ := fields[block].(map[string]any)
		at := check.Key(check.Key(path, block), name)
		q, err := resource.ParseQuantity(fmt.Sprint(amounts[name]))
		if err == nil && q.Value() >= int64(least)<<20 && !r.Wrong(at) {
			r.Addf(at, "%s is all the memory of node %s, %d MiB, which would run no pod: lower it", &q, small, least)
		}
	}
	for _, block := range []string{"systemReserved", "kubeReserved"} {
		amounts, _ := fields[block].(map[string]any)
		at := check.Key(path, block) + ".cpu"
		if q, err := resource.ParseQuantity(fmt.Sprint(amounts["cpu"])); err == nil && q.MilliValue() >= int64(cores)*1000 && !r.Wrong(at) {
			r.Addf(at, "%s is all the processor of node %s, %d cores, which would run no pod: lower it", &q, few, cores)
		}
	}
	r.keptCores(path+".reservedSystemCPUs", fields["reservedSystemCPUs"], cores, few)
}

// keptCores checks a list of cores that pods do not get.
func (r *rules) keptCores(at string, value any, cores int, node string) {
	text, given := value.(string)
	if !given || text == "" {
		return
	}
	if !scope.CPUListForm.MatchString(text) || strings.Contains(text, ";") {
		r.Addf(at, "%q is no list of cores such as 0-1,4", text)

		return
	}
	for _, part := range strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c == '-' }) {
		if n, _ := strconv.Atoi(part); n >= cores {
			r.Addf(at, "names core %d, and node %s has %d, counted from 0: name cores that every node has", n, node, cores)

			return
		}
	}
}
