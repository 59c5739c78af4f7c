// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/cel"
	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/config/types/block/blockhelpers"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// machineDisks lists a node's disks that match a CEL expression.
func machineDisks(ctx context.Context, op *bridge.Op) (bridge.Tree, error) {
	t, err := targetOf(op.In)
	if err != nil {
		return nil, err
	}

	timeout, err := timeoutOf(op.In, "timeouts.read")
	if err != nil {
		return nil, err
	}

	selector := op.In.Str("selector")
	if selector == "" {
		selector = "true"
	}

	expression, err := cel.ParseBooleanExpression(selector, celenv.DiskLocator())
	if err != nil {
		return nil, fmt.Errorf("failed to parse celenv selector: %w", err)
	}

	var disks []bridge.Tree
	err = retry(ctx, timeout, func(ctx context.Context) error {
		return t.do(ctx, func(ctx context.Context, c *client.Client) (err error) {
			disks, err = matching(ctx, c, expression)
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("failed to get list of disks: %w", err)
	}

	return merged(op.In, bridge.Tree{"id": "machine_disks", "endpoint": t.endpoint, "disks": disks}), nil
}

func matching(ctx context.Context, c *client.Client, expression cel.Expression) ([]bridge.Tree, error) {
	disks, err := blockhelpers.MatchDisks(ctx, c.COSI, &expression)
	if err != nil {
		return nil, err
	}

	found := make([]bridge.Tree, len(disks))
	for i, d := range disks {
		found[i] = diskTree(d.TypedSpec())
	}

	return found, nil
}

func diskTree(d *block.DiskSpec) bridge.Tree {
	return bridge.Tree{
		"devPath": d.DevPath, "size": int(d.Size), "prettySize": d.PrettySize, // a disk's size fits
		"ioSize": int(d.IOSize), "sectorSize": int(d.SectorSize), // small
		"readonly": d.Readonly, "cdrom": d.CDROM, "rotational": d.Rotational,
		"model": d.Model, "serial": d.Serial, "modalias": d.Modalias, "wwid": d.WWID, "uuid": d.UUID,
		"busPath": d.BusPath, "subSystem": d.SubSystem, "transport": d.Transport,
		"secondaryDisks": append([]string{}, d.SecondaryDisks...), "symlinks": append([]string{}, d.Symlinks...),
	}
}
