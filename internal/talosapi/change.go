// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talosapi

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/cosi-project/runtime/pkg/safe"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
)

// schematicExtension names the extension by which the Image Factory records the schematic in an image.
const schematicExtension = "schematic"

// Schematic returns the id of the schematic that the node's image was made from.
func (c *Client) Schematic(ctx context.Context, address string) (string, error) {
	node, err := c.node(ctx, address)
	if err != nil {
		return "", err
	}
	extensions, err := safe.StateListAll[*runtime.ExtensionStatus](ctx, node.COSI)
	if err != nil {
		return "", fmt.Errorf("asking for the extensions: %w", err)
	}
	for e := range extensions.All() {
		if e.TypedSpec().Metadata.Name == schematicExtension {
			return e.TypedSpec().Metadata.Version, nil
		}
	}

	return "", nil
}

// bootIDFile holds Linux's id of the current boot.
const bootIDFile = "/proc/sys/kernel/random/boot_id"

// BootID returns an id that changes with every boot.
func (c *Client) BootID(ctx context.Context, address string) (string, error) {
	node, err := c.node(ctx, address)
	if err != nil {
		return "", err
	}
	file, err := node.Read(ctx, bootIDFile)
	if err != nil {
		return "", fmt.Errorf("asking which boot it is: %w", err)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	id, err := io.ReadAll(file)
	if err != nil {
		return "", fmt.Errorf("asking which boot it is: %w", err)
	}

	return strings.TrimSpace(string(id)), nil
}

// Bootstrap starts etcd on a control plane.
func (c *Client) Bootstrap(ctx context.Context, address string) error {
	node, err := c.node(ctx, address)
	if err != nil {
		return err
	}
	if err := node.Bootstrap(ctx, &machineapi.BootstrapRequest{}); err != nil {
		return fmt.Errorf("asking it to start etcd: %w", err)
	}

	return nil
}

// Retire resets a node: it leaves etcd, wipes what it knows of the cluster and powers off.
func (c *Client) Retire(ctx context.Context, address string) error {
	node, err := c.node(ctx, address)
	if err != nil {
		return err
	}
	if err := node.ResetGeneric(ctx, &machineapi.ResetRequest{
		Graceful: true,
		SystemPartitionsToWipe: []*machineapi.ResetPartitionSpec{
			{Label: constants.StatePartitionLabel, Wipe: true},
			{Label: constants.EphemeralPartitionLabel, Wipe: true},
		},
	}); err != nil {
		return fmt.Errorf("asking it to leave: %w", err)
	}

	return nil
}

// RemoveEtcdMember removes an unreachable member through another node.
func (c *Client) RemoveEtcdMember(ctx context.Context, address string, id uint64) error {
	node, err := c.node(ctx, address)
	if err != nil {
		return err
	}
	if err := node.EtcdRemoveMemberByID(ctx, &machineapi.EtcdRemoveMemberByIDRequest{MemberId: id}); err != nil {
		return fmt.Errorf("removing the member of etcd: %w", err)
	}

	return nil
}

// Snapshot writes a copy of etcd's data as this control plane has it.
func (c *Client) Snapshot(ctx context.Context, address string, to io.Writer) error {
	node, err := c.node(ctx, address)
	if err != nil {
		return err
	}
	from, err := node.EtcdSnapshot(ctx, &machineapi.EtcdSnapshotRequest{})
	if err != nil {
		return fmt.Errorf("asking for a snapshot of etcd: %w", err)
	}
	defer from.Close() //nolint:errcheck // only read
	if _, err := io.Copy(to, from); err != nil {
		return fmt.Errorf("reading the snapshot of etcd: %w", err)
	}

	return nil
}
