// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package health

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

// Expected describes what a node should be.
type Expected struct {
	cluster.Member
	cluster.Image
	// Configuration that was applied.
	Configuration []byte
	// Kubernetes is the version of its kubelet; empty when any will do.
	Kubernetes string
}

// Drift returns what was changed by hand since the last run, in what no infrastructure provider looks at:
// versions, schematics and configurations of nodes, members of etcd, nodes of Kubernetes. It returns one line
// for each difference, none of which shows a secret. A node that does not answer is a line too.
func Drift(ctx context.Context, access cluster.Access, c cluster.Cluster, nodes []Expected, p cluster.PollOptions) ([]string, error) {
	api, err := access.Talos(ctx)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, n := range nodes {
		found = append(found, n.drift(ctx, api, p)...)
	}
	found = append(found, etcdDrift(ctx, api, c, p)...)

	return append(found, kubernetesDrift(ctx, access, nodes, p)...), nil
}

func (n Expected) drift(ctx context.Context, api cluster.Talos, p cluster.PollOptions) []string {
	calling, cancel := context.WithTimeout(ctx, p.Call)
	defer cancel()
	version, err := api.Version(calling, n.Address)
	if err != nil {
		return []string{fmt.Sprintf("%s: it does not say what it runs: %v", n.Member, err)}
	}
	var found []string
	if version != n.Version {
		found = append(found, fmt.Sprintf("%s: Talos is %s, the stack has %s", n.Member, version, n.Version))
	}
	if n.Schematic != "" {
		schematic, err := api.Schematic(calling, n.Address)
		if err != nil || schematic != n.Schematic {
			found = append(found, fmt.Sprintf("%s: the schematic is %s, the stack has %s",
				n.Member, cmp.Or(errorText(err), schematic, "none"), n.Schematic))
		}
	}
	has, err := api.Configuration(calling, n.Address)
	if err != nil {
		return append(found, fmt.Sprintf("%s: it does not say its configuration: %v", n.Member, err))
	}
	lines, err := machineconfig.Differences(n.Configuration, has)
	if err != nil {
		return append(found, fmt.Sprintf("%s: configuration: %v", n.Member, err))
	}
	for _, line := range lines {
		found = append(found, fmt.Sprintf("%s: configuration: %s", n.Member, line))
	}

	return found
}

func errorText(err error) string {
	if err == nil {
		return ""
	}

	return "unknown: " + err.Error()
}

// etcdDrift asks the first control plane that answers.
func etcdDrift(ctx context.Context, api cluster.Talos, c cluster.Cluster, p cluster.PollOptions) []string {
	planes := c.ControlPlanes()
	for _, m := range planes {
		calling, cancel := context.WithTimeout(ctx, p.Call)
		members, err := api.EtcdMembers(calling, m.Address)
		cancel()
		if err != nil {
			continue
		}
		var found []string
		for _, e := range members {
			if !slices.ContainsFunc(planes, e.Is) {
				found = append(found, fmt.Sprintf("etcd: it has a member %s %v that is no control plane of the stack", e.Hostname, e.Addresses))
			}
		}
		for _, plane := range planes {
			if !slices.ContainsFunc(members, func(e cluster.EtcdMember) bool { return e.Is(plane) }) {
				found = append(found, fmt.Sprintf("etcd: %s is no member", plane))
			}
		}

		return found
	}

	return []string{"etcd: no control plane says who its members are"}
}

func kubernetesDrift(ctx context.Context, access cluster.Access, nodes []Expected, p cluster.PollOptions) []string {
	calling, cancel := context.WithTimeout(ctx, p.Call)
	defer cancel()
	api, err := access.Kubernetes(calling)
	if err != nil {
		return []string{fmt.Sprintf("Kubernetes: it does not say its nodes: %v", err)}
	}
	list, err := api.CoreV1().Nodes().List(calling, metav1.ListOptions{})
	if err != nil {
		return []string{fmt.Sprintf("Kubernetes: it does not say its nodes: %v", err)}
	}
	var found []string
	kubelets := map[string]string{}
	for _, n := range list.Items {
		kubelets[n.Name] = n.Status.NodeInfo.KubeletVersion
		if !slices.ContainsFunc(nodes, func(e Expected) bool { return e.Hostname == n.Name }) {
			found = append(found, fmt.Sprintf("Kubernetes: it has a node %s that is none of the stack", n.Name))
		}
		if n.Spec.Unschedulable {
			found = append(found, fmt.Sprintf("Kubernetes: node %s is cordoned", n.Name))
		}
		if image := n.Annotations[cluster.BootsNextAnnotation]; image != "" {
			found = append(found, fmt.Sprintf("Kubernetes: node %s boots %s next, which an interrupted run installed", n.Name, image))
		}
	}
	for _, n := range nodes {
		runs, known := kubelets[n.Hostname]
		switch {
		case !known:
			found = append(found, fmt.Sprintf("Kubernetes: %s is no node", n.Member))
		case n.Kubernetes != "" && runs != "" && runs != n.Kubernetes:
			found = append(found, fmt.Sprintf("%s: the kubelet is %s, the stack has %s", n.Member, runs, n.Kubernetes))
		}
	}

	return found
}
