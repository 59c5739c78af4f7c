// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package doctor

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/proxmox"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Privilege names a privilege that a stack needs, at a path of Proxmox VE's access control list.
type Privilege struct{ Path, Name, For string }

// NeededPrivileges returns what the stack needs on a release of Proxmox VE, sorted, each once.
func NeededPrivileges(c spec.Config, version int) []Privilege {
	n := &needed{seen: map[[2]string]bool{}}
	n.add("/", "letting hosts download boot images", "Sys.Audit", "Sys.Modify")
	n.add("/vms", "making, starting and removing VMs", "VM.Allocate", "VM.Audit", "VM.PowerMgmt")
	n.add("/vms", "VMs' settings", "VM.Config.CDROM", "VM.Config.CPU", "VM.Config.Cloudinit", "VM.Config.Disk",
		"VM.Config.HWType", "VM.Config.Memory", "VM.Config.Network", "VM.Config.Options")
	for _, node := range c.Nodes {
		n.node(c, node, version)
	}
	slices.SortFunc(n.all, func(a, b Privilege) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Name, b.Name))
	})

	return n.all
}

// needed collects privileges.
type needed struct {
	all  []Privilege
	seen map[[2]string]bool
}

func (n *needed) add(path, why string, names ...string) {
	for _, name := range names {
		if key := [2]string{path, name}; !n.seen[key] {
			n.seen[key] = true
			n.all = append(n.all, Privilege{Path: path, Name: name, For: why})
		}
	}
}

// node adds what one node needs.
func (n *needed) node(c spec.Config, node spec.NamedNode, version int) {
	for _, d := range disksOf(node) {
		n.add("/storage/"+d.datastore, "disks", "Datastore.AllocateSpace", "Datastore.Audit")
	}
	n.add("/storage/"+imageDatastore(c, node), "boot images", "Datastore.Allocate", "Datastore.AllocateTemplate", "Datastore.Audit")
	for _, d := range node.Devices() {
		if d.Bridge != nil {
			n.add("/sdn/zones/localnetwork/"+*d.Bridge, "network devices", "SDN.Use")
		}
	}
	if spec.Value(node.Agent) {
		name := "VM.Monitor"
		if version > 8 {
			name = "VM.GuestAgent.Audit"
		}
		n.add("/vms", "agent: asking the guest agent", name)
	}
	if spec.Value(node.Migrate) {
		n.add("/vms", "migrate: moving VMs to another host", "VM.Migrate")
	}
	if node.Pool != nil {
		n.add("/pool/"+*node.Pool, "pool", "Pool.Allocate", "Pool.Audit")
	}
	if node.HA != nil {
		n.add("/", "ha", "Sys.Console")
	}
	n.devices(node)
}

func (n *needed) devices(node spec.NamedNode) {
	if g := node.GPU; g != nil {
		if g.Mapping != nil {
			n.add("/mapping/pci/"+*g.Mapping, "gpu.mapping", "Mapping.Use")
		}
		if len(g.Identities) > 0 {
			n.add("/mapping/pci", "gpu.identities", "Mapping.Audit", "Mapping.Modify", "Mapping.Use")
		}
	}
	for _, u := range node.USB {
		if u.Mapping != nil {
			n.add("/mapping/usb/"+*u.Mapping, "usb.mapping", "Mapping.Use")
		}
	}
}

// privileges asks what the credentials may do, path by path.
func (e *examiner) privileges() error {
	if err := e.reachable(); err != nil {
		return err
	}
	user, token := e.user()
	if user == "root@pam" && token == "" {
		return nil // may do everything
	}
	missing := map[string][]Privilege{}
	granted := map[string]map[string]bool{}
	for _, p := range NeededPrivileges(e.Config, e.version) {
		if _, asked := granted[p.Path]; !asked {
			have, err := e.permissions(p.Path)
			if err != nil {
				if proxmox.Status(err) == http.StatusNotImplemented {
					return skipf("%s", reason(err))
				}
				e.found("", "the API does not say what the credentials may do on "+p.Path+": "+reason(err), "try again")

				return nil
			}
			granted[p.Path] = have
		}
		if !granted[p.Path][p.Name] {
			missing[p.Path] = append(missing[p.Path], p)
		}
	}
	for _, path := range sortedKeys(missing) {
		e.foundMissing(path, missing[path], user, token)
	}

	return nil
}

func (e *examiner) permissions(path string) (map[string]bool, error) {
	var all map[string]map[string]int
	if err := e.get("/access/permissions?path="+url.QueryEscape(path), &all); err != nil {
		return nil, err
	}
	have := map[string]bool{}
	for name := range all[path] {
		have[name] = true
	}

	return have, nil
}

func (e *examiner) foundMissing(path string, missing []Privilege, user, token string) {
	var names, reasons []string
	for _, p := range missing {
		names = append(names, p.Name)
		if !slices.Contains(reasons, p.For) {
			reasons = append(reasons, p.For)
		}
	}
	role := "Talos" + strconv.Itoa(len(e.report.Findings)+1)
	remedy := fmt.Sprintf("pveum role add %s --privs %q\npveum acl modify %s --users %s --roles %s",
		role, strings.Join(names, " "), path, user, role)
	if token != "" {
		remedy += fmt.Sprintf("\npveum acl modify %s --tokens '%s' --roles %s   # where the token has privilege separation", path, token, role)
	}
	problem := fmt.Sprintf("%s may not %s on %s (%s)", cmp.Or(token, user), strings.Join(names, ", "), path, strings.Join(reasons, "; "))
	e.found("", problem, remedy)
}
