// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Model holds what the stack file says.
type Model struct {
	Nodes   []string
	Memory  int
	Talos   string
	Label   string
	Replace map[string]int
	Force   []string
	// GitOps reports whether Flux follows a repository.
	GitOps bool
	// Hosts are those of nodes that are not on the first one.
	Hosts map[string]string
}

// Hosts are those that VMs may be on; a datastore that they share has the boot image.
var hosts = []string{"alpha", "charlie"}

// NewModel returns the model of a new cluster.
func NewModel(nodes []string) Model {
	return Model{Nodes: slices.Clone(nodes), Memory: 2048, Talos: "v1.12.4", Label: "0", Replace: map[string]int{}, Hosts: map[string]string{}}
}

// Apply returns the model after an edit.
func (m Model) Apply(step Step) (Model, error) {
	m.Nodes, m.Replace, m.Hosts, m.Force = slices.Clone(m.Nodes), maps.Clone(m.Replace), maps.Clone(m.Hosts), nil
	for _, arg := range step.Args {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "memory":
			memory, err := strconv.Atoi(value)
			if err != nil {
				return m, fmt.Errorf("%s: %w", step, err)
			}
			m.Memory = memory
		case "talos":
			m.Talos = value
		case "label":
			m.Label = value
		case "add":
			m.Nodes = append(m.Nodes, value)
		case "remove":
			m.Nodes = slices.DeleteFunc(m.Nodes, func(n string) bool { return n == value })
		case "replace":
			m.Replace[value]++
		case "gitops":
			m.GitOps = value == "flux"
		case "move":
			m.Hosts[value] = otherHost(m.host(value))
		case "force":
			m.Force = append(m.Force, value)
		default:
			return m, fmt.Errorf("%s: unknown edit %q", step, key)
		}
	}

	return m, nil
}

// ControlPlanes returns the names of the control planes.
func (m Model) ControlPlanes() []string {
	return slices.DeleteFunc(slices.Clone(m.Nodes), func(n string) bool { return !isControlPlane(n) })
}

func isControlPlane(node string) bool { return strings.HasPrefix(node, "cp-") }

// number returns a node's number, which its VM id and its address end with.
func number(node string) int {
	_, text, _ := strings.Cut(node, "-")
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}

	return n
}

// host returns the host of a node.
func (m Model) host(node string) string {
	if host := m.Hosts[node]; host != "" {
		return host
	}

	return hosts[0]
}

func otherHost(host string) string {
	if host == hosts[0] {
		return hosts[1]
	}

	return hosts[0]
}

// VMID returns the id of a node's VM.
func VMID(node string) int { return 300 + number(node) }

// Address returns a node's address.
func Address(node string) string { return "10.30.0." + strconv.Itoa(number(node)) }

// StackFile returns the stack file.
func (m Model) StackFile() string {
	var b strings.Builder
	b.WriteString(`config:
  talos-proxmox:proxmox:
    endpoint: https://alpha.example.com:8006
    hosts: {alpha: {datastore: local-lvm}, charlie: {datastore: local-lvm}}
  talos-proxmox:image: {datastore: nas, datastoreHost: alpha}
  talos-proxmox:cluster:
    name: small
    vip: 10.30.0.200
    allowSchedulingOnControlPlanes: true
  talos-proxmox:kubernetes: {version: v1.35.0}
`)
	fmt.Fprintf(&b, "  talos-proxmox:talos: {version: %s}\n", m.Talos)
	fmt.Fprintf(&b, `  talos-proxmox:defaults:
    all:
      allowSharedHost: true
      cpu: 2
      memory: %d
      labels: {chaos: "%s"}
      osDisk: {size: 10}
      networks: {lan: {bridge: vmbr0, subnet: 10.30.0.0/24, gateway: 10.30.0.254}}
  talos-proxmox:lifecycle:
    readyTimeout: 2m
    applyTimeout: 2m
    upgradeTimeout: 2m
    drainTimeout: 30s
`, m.Memory, m.Label)

	if len(m.Replace) > 0 {
		var entries []string
		for _, node := range slices.Sorted(maps.Keys(m.Replace)) {
			if slices.Contains(m.Nodes, node) {
				entries = append(entries, fmt.Sprintf("%s: %d", node, m.Replace[node]))
			}
		}
		fmt.Fprintf(&b, "    replace: {%s}\n", strings.Join(entries, ", "))
	}
	if len(m.Force) > 0 {
		fmt.Fprintf(&b, "    force: [%s]\n", strings.Join(m.Force, ", "))
	}
	b.WriteString("  talos-proxmox:nodes:\n")
	for _, node := range m.Nodes {
		role := "worker"
		if isControlPlane(node) {
			role = "controlplane"
		}
		fmt.Fprintf(&b, "    %s: {role: %s, host: %s, vmId: %d, networks: {lan: {address: %s}}}\n",
			node, role, m.host(node), VMID(node), Address(node))
	}
	if m.GitOps {
		b.WriteString("  talos-proxmox:gitops: {provider: flux, chart: {version: 2.18.2}, " +
			"git: {url: https://gitea.example.com/lab/chaos.git, path: clusters/small}}\n")
	}

	return b.String()
}
