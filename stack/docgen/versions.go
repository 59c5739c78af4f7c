// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package docgen

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/versions"
)

// versionsPage returns the page of supported versions, from the tables that decide.
func versionsPage() []byte {
	var b bytes.Buffer
	b.WriteString("<!-- Written by cmd/stackdoc from internal/versions; do not edit. -->\n# Supported versions\n\n" +
		"| Talos | Kubernetes | upgraded from | taken back to | official extensions |\n|---|---|---|---|---|\n")
	for _, c := range versions.Contracts() {
		oldest, newest := versions.KubernetesRange(c.First())
		names, _ := versions.Extensions(c.First().String())
		fmt.Fprintf(&b, "| %s | %s to %s | %s | %s | %d |\n", c, oldest, newest, steps(c, true), steps(c, false), len(names))
	}
	fmt.Fprintf(&b, "\nA stack that names no version gets Talos %s and Kubernetes %s.\n", versions.DefaultTalos, versions.DefaultKubernetes)
	fmt.Fprintf(&b, "\n| Plugin | Version |\n|---|---|\n| proxmoxve | %s |\n| talos | %s |\n| kubernetes | %s |\n"+
		"| github, gitlab, command (deploy keys) | %s, %s, %s |\n",
		versions.ProxmoxPlugin, versions.TalosPlugin, versions.KubernetesPlugin,
		versions.GitHubPlugin, versions.GitLabPlugin, versions.CommandPlugin)
	fmt.Fprintf(&b, "\n| Without a version in the stack | |\n|---|---|\n| Cilium's chart | %s |\n| Flux's chart | %s |\n"+
		"| Flux operator's chart | %s |\n| Argo CD's chart | %s |\n",
		versions.CiliumChart, versions.FluxChart, versions.FluxOperator, versions.ArgoChart)

	return b.Bytes()
}

// steps returns the supported minors that c is upgraded from in one step, or taken back to.
func steps(c versions.Contract, up bool) string {
	var found []string
	for _, other := range versions.Contracts() {
		from, to := other, c
		if !up {
			from, to = c, other
		}
		if from.NewerThan(to) != up && from != to && versions.TalosStep(from.First(), to.First()) == nil {
			found = append(found, other.String())
		}
	}
	if len(found) == 0 {
		return "–"
	}

	return strings.Join(found, ", ")
}
