// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talos-proxmox/talos-proxmox/internal/versions"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

// CheckContractSupported returns nil when every node runs a Talos that reads configurations of the contract.
// Members that Kubernetes does not know join later, with the cluster's version, and are not asked. The error
// names the first node that runs an older Talos, or does not answer.
func CheckContractSupported(
	ctx context.Context, access cluster.Access, c cluster.Cluster, contract versions.Contract, perCall time.Duration,
) error {
	api, err := access.Talos(ctx)
	if err != nil {
		return err
	}
	kubernetes, err := access.Kubernetes(ctx)
	if err != nil {
		return err
	}
	list, err := kubernetes.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("asking Kubernetes for its nodes: %w", err)
	}
	known := make(map[string]bool, len(list.Items))
	for _, n := range list.Items {
		known[n.Name] = true
	}
	for _, m := range c.Members {
		if !known[m.Hostname] {
			continue
		}
		if err := checkContract(ctx, api, m, contract, perCall); err != nil {
			return fmt.Errorf("node %s: %w", m, err)
		}
	}

	return nil
}

func checkContract(ctx context.Context, api cluster.Talos, m cluster.Member, contract versions.Contract, perCall time.Duration) error {
	calling, cancel := context.WithTimeout(ctx, perCall)
	defer cancel()
	text, err := api.Version(calling, m.Address)
	if err != nil {
		return fmt.Errorf("asking what it runs: %w", err)
	}
	// A version of Talos that cannot be read is somebody's own build.
	if runs, err := versions.ParseTalos(text); err == nil {
		return contract.UnderstoodBy(runs)
	}

	return nil
}
