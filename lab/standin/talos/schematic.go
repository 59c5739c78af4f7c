// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"fmt"

	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/imagefactory"
	"github.com/siderolabs/image-factory/pkg/schematic"
	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

func schematicResource() *bridge.Resource {
	return &bridge.Resource{
		Args: &imagefactory.SchematicArgs{}, State: imagefactory.Schematic{},
		Framework: true,
		Recompute: func([]bridge.Change) []string { return []string{"id"} },
		Create: func(ctx context.Context, op *bridge.Op) (string, bridge.Tree, error) {
			id, err := postSchematic(ctx, op, "create")
			if err != nil {
				return "", nil, err
			}
			return id, nil, nil
		},
		// Another schematic is registered, but an update cannot give the resource another id: as with
		// the genuine plugin it keeps the first one's, and the new one's stands among its outputs.
		Update: func(ctx context.Context, op *bridge.Op) (bridge.Tree, error) {
			id, err := postSchematic(ctx, op, "update")
			return bridge.Tree{"id": id}, err
		},
	}
}

func postSchematic(ctx context.Context, op *bridge.Op, what string) (string, error) {
	s, err := sessionOf(op)
	if err != nil {
		return "", err
	}

	var wanted schematic.Schematic
	if err := yaml.Unmarshal([]byte(op.In.Str("schematic")), &wanted); err != nil {
		return "", fmt.Errorf("failed to unmarshal schematic: %w", err)
	}

	id, _, err := s.factory.SchematicCreate(ctx, wanted)
	if err != nil {
		return "", fmt.Errorf("failed to %s schematic: %w", what, err)
	}

	return id, nil
}
