// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"fmt"

	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/imagefactory"
	"github.com/siderolabs/image-factory/pkg/schematic"
	"gopkg.in/yaml.v3"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

func schematicResource() *bridge.Resource {
	return &bridge.Resource{
		Args: &imagefactory.SchematicArgs{}, State: imagefactory.Schematic{},
		Create: func(ctx context.Context, op *bridge.Op) (string, bridge.Tree, error) {
			id, err := postSchematic(ctx, op)
			if err != nil {
				return "", nil, fmt.Errorf("failed to create schematic: %w", err)
			}
			return id, nil, nil
		},
		// Another schematic is registered, but an update cannot give the resource another id: as with
		// the genuine plugin it keeps the first one's.
		Update: func(ctx context.Context, op *bridge.Op) (bridge.Tree, error) {
			if _, err := postSchematic(ctx, op); err != nil {
				return nil, fmt.Errorf("failed to update schematic: %w", err)
			}
			return nil, nil //nolint:nilnil // the outputs are the inputs
		},
	}
}

func postSchematic(ctx context.Context, op *bridge.Op) (string, error) {
	s, err := sessionOf(op)
	if err != nil {
		return "", err
	}

	var wanted schematic.Schematic
	if err := yaml.Unmarshal([]byte(op.In.Str("schematic")), &wanted); err != nil {
		return "", fmt.Errorf("failed to unmarshal schematic: %w", err)
	}

	return s.factory.SchematicCreate(ctx, wanted)
}
