// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talosapi

import (
	"context"
	"fmt"
	"io"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
)

// Recover hands a control plane a snapshot of etcd and starts etcd with it. The node must wait for etcd and
// have no data of it: a node that has answers AlreadyExists.
func (c *Client) Recover(ctx context.Context, address string, snapshot io.Reader) error {
	node, err := c.node(ctx, address)
	if err != nil {
		return err
	}
	if _, err := node.EtcdRecover(ctx, snapshot); err != nil {
		return fmt.Errorf("handing it the snapshot of etcd: %w", err)
	}
	if err := node.Bootstrap(ctx, &machineapi.BootstrapRequest{RecoverEtcd: true}); err != nil {
		return fmt.Errorf("asking it to start etcd with the snapshot: %w", err)
	}

	return nil
}
