// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package vms

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// maxCores bounds the cores of a list, so that a mistake does not become a long one.
const maxCores = 4096

// coresOf reads a list of cores such as "0-3,8"; the message says what is wrong with it.
func coresOf(text string) (cores []int, problem string) {
	if !scope.CPUListForm.MatchString(text) {
		return nil, fmt.Sprintf("%q is no list of cores such as 0-3,8", text)
	}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ';' }) {
		low, high, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(low)
		last := first
		if err == nil && isRange {
			last, err = strconv.Atoi(high)
		}
		switch {
		case err != nil || last >= maxCores:
			return nil, fmt.Sprintf("%s is no core of a machine", part)
		case last < first:
			return nil, fmt.Sprintf("%s runs backwards: write %s-%s", part, high, low)
		}
		for core := first; core <= last; core++ {
			if slices.Contains(cores, core) {
				return nil, fmt.Sprintf("core %d is listed twice", core)
			}
			cores = append(cores, core)
		}
	}

	return cores, ""
}

// coreSets checks lists of cores as sets: pinned cores, and the cores of the virtual NUMA nodes.
func (r *rules) coreSets(at string, n spec.NamedNode) {
	if n.CPUAffinity != nil {
		if _, problem := coresOf(*n.CPUAffinity); problem != "" {
			r.Addf(at+".cpuAffinity", "%s", problem)
		}
	}
	owner := map[int]int{}
	vcpus := *n.CPU * *n.Sockets
	for i, numa := range n.NUMANodes {
		path := check.Index(at+".numaNodes", i)
		cores, problem := coresOf(numa.CPUs)
		if problem != "" {
			r.Addf(path+".cpus", "%s", problem)

			return
		}
		for _, core := range cores {
			if other, twice := owner[core]; twice {
				r.Addf(path+".cpus", "core %d is in numaNodes[%d] too: a core is in one NUMA node", core, other)

				return
			}
			if core >= vcpus {
				r.Addf(path+".cpus", "core %d is not one of the VM's %d, which count from 0: lower it, or give the VM more", core, vcpus)

				return
			}
			owner[core] = i
		}
		if numa.HostNodes == nil && numa.Policy != nil && *numa.Policy != "preferred" {
			r.Addf(path+".policy", "is %s, and says how to use hostNodes, which are not set: add them, or remove it", *numa.Policy)
		}
		if numa.HostNodes != nil {
			if _, problem := coresOf(*numa.HostNodes); problem != "" {
				r.Addf(path+".hostNodes", "%s", strings.Replace(problem, "core", "node", 1))
			}
		}
	}
	if len(n.NUMANodes) > 0 && len(owner) < vcpus {
		r.Addf(at+".numaNodes", "have %d cores together, and the VM has %d: give every core to one of them", len(owner), vcpus)
	}
}
