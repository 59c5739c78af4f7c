// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

func factoryVersions(ctx context.Context, op *bridge.Op) (bridge.Tree, error) {
	s, err := sessionOf(op)
	if err != nil {
		return nil, err
	}

	versions, err := s.factory.Versions(ctx)
	if err != nil {
		return nil, fmt.Errorf("failed to get talos versions: %w", err)
	}

	if op.In.Bool("filters.stableVersionsOnly") {
		versions = slices.DeleteFunc(versions, func(v string) bool {
			parsed, err := semver.ParseTolerant(strings.TrimPrefix(v, "v"))
			return err != nil || len(parsed.Pre) > 0
		})
	}

	return merged(op.In, bridge.Tree{"id": "talos_versions", "talosVersions": versions}), nil
}

func factoryExtensions(ctx context.Context, op *bridge.Op) (bridge.Tree, error) {
	s, err := sessionOf(op)
	if err != nil {
		return nil, err
	}

	found, err := s.factory.ExtensionsVersions(ctx, op.In.Str("talosVersion"))
	if err != nil {
		return nil, fmt.Errorf("failed to get talos extensions versions: %w", err)
	}

	exact, parts := op.In.Strs("exactFilters.names"), op.In.Strs("filters.names")
	infos := []bridge.Tree{}

	for _, e := range found {
		wanted := len(exact)+len(parts) == 0 || slices.Contains(exact, e.Name) ||
			slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(e.Name, p) })
		if wanted {
			infos = append(infos, bridge.Tree{
				"name": e.Name, "ref": e.Ref, "digest": e.Digest, "author": e.Author, "description": e.Description,
			})
		}
	}

	return merged(op.In, bridge.Tree{"id": "extensions_info", "extensionsInfos": infos}), nil
}

func factoryOverlays(ctx context.Context, op *bridge.Op) (bridge.Tree, error) {
	s, err := sessionOf(op)
	if err != nil {
		return nil, err
	}

	found, err := s.factory.OverlaysVersions(ctx, op.In.Str("talosVersion"))
	if err != nil {
		return nil, fmt.Errorf("failed to get talos overlays versions: %w", err)
	}

	name := op.In.Str("filters.name")
	infos := []bridge.Tree{}

	for _, o := range found {
		if name == "" || o.Name == name {
			infos = append(infos, bridge.Tree{"name": o.Name, "image": o.Image, "ref": o.Ref, "digest": o.Digest})
		}
	}

	return merged(op.In, bridge.Tree{"id": "overlays_info", "overlaysInfos": infos}), nil
}
