// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package preflight

import (
	"context"
	"fmt"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// versionPaths are the settings on which the form of every machine configuration and of every manifest hangs.
var versionPaths = []string{"talos.version", "talos.contract", "kubernetes.version"}

// Beside records what [Check] finds beside the problems at some paths: as if what is wrong there had been left out. What may
// only follow from that is not recorded. It asks no network for charts.
func Beside(ctx context.Context, paths []string, r Request, l *check.List) {
	r.Charts.Fetch, r.CachedCharts = nil, true
	r.Config = spec.Clone(r.Config)
	for _, path := range paths {
		leaveOut(&r.Config, path)
	}
	if r.Config.Cluster.Name == nil {
		r.Config.Cluster.Name = spec.Ptr("cluster")
	}
	given := r.Config
	r.Config = r.Config.WithDefaults()

	var said check.List
	if concern(versionPaths, paths) {
		machineconfig.CheckReading(machineconfig.Input{Config: r.Config, ReadFile: r.ReadFile}, &said)
	} else {
		m, err := r.tryMake(ctx)
		said.AddError("manifests", err)
		if m.Machines.Config.Talos.Version == nil { // made only in part
			m.Machines = machineconfig.Input{Config: r.Config, Installer: map[string]string{}, ReadFile: r.ReadFile}
		}
		machineconfig.CheckAround(m.Machines, &said)
	}
	for _, p := range said.Problems() {
		if !mayFollow(p.Path, paths) && (!concern(written, []string{p.Path}) || isWritten(given, p.Path)) {
			l.Add(p)
		}
	}
}

// written are settings of which machine configurations are made: what is derived where one is left out is nobody's mistake.
var written = []string{"nodes", "cluster", "talos", "kubernetes"}

// tryMake calls make. What was left out may be what it cannot do without.
func (r Request) tryMake(ctx context.Context) (m Made, err error) {
	defer func() {
		if found := recover(); found != nil {
			m, err = Made{}, check.At("", fmt.Errorf("left out: %v", found))
		}
	}()

	return r.make(ctx)
}

// general are settings of which machine configurations have nothing.
var general = []string{"gitops", "output", "lifecycle", "proxmox"}

// mayFollow reports whether a problem at a path may follow from the problems at others: it is about the same setting, or about
// none in particular of a node that is made of some of them.
func mayFollow(path string, paths []string) bool {
	if path == "" || concern([]string{path}, paths) {
		return true
	}
	elements := check.Elements(path)
	whole := elements[0] == "nodes" && len(elements) <= 2 || path == "manifests"
	if !whole {
		return false
	}
	for _, other := range paths {
		at := check.Elements(other)
		switch {
		case concern(general, []string{other}):
		case len(at) > 1 && at[0] == "nodes" && len(elements) > 1 && at[1] != elements[1]:
		default:
			return true
		}
	}

	return false
}

// concern reports whether some path of the one list is at, below or around one of the other.
func concern(paths, others []string) bool {
	for _, a := range paths {
		for _, b := range others {
			if related(a, b) {
				return true
			}
		}
	}

	return false
}

// related reports whether one of the paths is at or below the other.
func related(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}

	return a == b || strings.HasPrefix(b, a) && strings.ContainsRune(".[", rune(b[len(a)]))
}
