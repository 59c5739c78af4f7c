// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"context"
	"fmt"
	"slices"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// RefuseUsed refuses to download a boot file over one that VMs have in their drives and this stack's state does not know:
// the stack would own it, and delete it with its own VMs, and Proxmox VE starts no VM whose file is gone. own are the nodes
// whose VMs are the stack's.
func (a API) RefuseUsed(ctx context.Context, volume, host string, hosts []string, own []spec.NamedNode) error {
	client, err := a.client(ctx)
	if err != nil {
		return err
	}
	if client == nil {
		return fmt.Errorf("nobody can be asked which VMs have %s in their drives: give proxmox.endpoint, and proxmox.apiToken or "+
			"proxmox.username and password, as its provider has them", volume)
	}
	users, err := client.UsersOf(ctx, volume, host, hosts)
	if err != nil {
		return err
	}
	for _, user := range users {
		if slices.ContainsFunc(own, func(n spec.NamedNode) bool { return n.Name == user.Name && spec.Value(n.VMID) == user.ID }) {
			continue
		}

		return fmt.Errorf("VM %d (%s) on host %s has %s in its drive, and this stack's state does not know that file: the next `pulumi destroy` "+
			"would take it from the VM, which then does not start any more\n  is there another stack of the same cluster.name? Rename the new "+
			"one. Was this stack's state lost? Take the VMs over with cluster.adopted and `tpx adopt`. Else take the file out of the VM's drive",
			user.ID, user.Name, user.Host, volume)
	}

	return nil
}
