// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmox

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
)

// Grants holds privileges by path of the access control list: "/", "/vms", "/vms/100", "/storage/local",
// "/sdn/zones", "/pool/k8s", "/mapping/pci/gpu". What is below a path has the path's, unless a nearer one is named.
type Grants map[string][]string

// has reports whether a privilege holds at a path.
func (g Grants) has(path, privilege string) bool {
	for {
		if have, ok := g[path]; ok {
			return slices.Contains(have, privilege)
		}
		if path == "/" {
			return false
		}
		path = path[:strings.LastIndex(path, "/")]
		if path == "" {
			path = "/"
		}
	}
}

// need names a privilege at a path, or several of which one is enough.
type need struct {
	path string
	any  []string
}

func at(path string, anyOf ...string) need { return need{path: path, any: anyOf} }

// check fails with Proxmox VE's own words when the caller has not all that is needed.
func (c caller) check(needs ...need) error {
	if c.grants == nil {
		return nil
	}
	for _, n := range needs {
		if !slices.ContainsFunc(n.any, func(p string) bool { return c.grants.has(n.path, p) }) {
			return &pve.Error{
				Status:  http.StatusForbidden,
				Message: fmt.Sprintf("Permission check failed (%s, %s)", n.path, strings.Join(n.any, "|")),
			}
		}
	}

	return nil
}

// known returns the privileges that the lab asks for anywhere, which somebody who may do everything has.
func known() []string {
	return []string{
		"Datastore.Allocate", "Datastore.AllocateSpace", "Datastore.AllocateTemplate", "Datastore.Audit",
		"Mapping.Audit", "Mapping.Modify", "Mapping.Use", "Pool.Allocate", "Pool.Audit", "SDN.Use",
		"Sys.Audit", "Sys.Console", "Sys.Modify", "VM.Allocate", "VM.Audit", "VM.Config.CDROM", "VM.Config.CPU",
		"VM.Config.Cloudinit", "VM.Config.Disk", "VM.Config.HWType", "VM.Config.Memory", "VM.Config.Network",
		"VM.Config.Options", "VM.GuestAgent.Audit", "VM.Migrate", "VM.Monitor", "VM.PowerMgmt",
	}
}

// permissions answers what the caller may do at a path. A privilege that is inherited has the value 1.
func permissions(r *request) (any, error) {
	path := r.param("path")
	if path == "" {
		return nil, bad("path", "the lab tells the privileges of one path at a time")
	}
	have := object{}
	for _, p := range known() {
		if r.check(at(path, p)) == nil {
			have[p] = 1
		}
	}

	return object{path: have}, nil
}

// objectOf returns the path of what a call is about.
func objectOf(r *http.Request) string {
	switch {
	case r.PathValue("vmid") != "":
		return "/vms/" + r.PathValue("vmid")
	case r.PathValue("storage") != "":
		return "/storage/" + r.PathValue("storage")
	case r.PathValue("node") != "":
		return "/nodes/" + r.PathValue("node")
	case r.PathValue("pool") != "":
		return "/pool/" + r.PathValue("pool")
	case strings.Contains(r.URL.Path, "/cluster/mapping/"):
		_, rest, _ := strings.Cut(r.URL.Path, "/cluster/")

		return "/" + rest
	}

	return "/"
}

// denied returns the refusal of a call that asks for more than one privilege at one place.
func denied() error {
	return &pve.Error{Status: http.StatusForbidden, Message: "Permission check failed"}
}
