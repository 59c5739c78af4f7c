// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"fmt"

	"github.com/talos-proxmox/talos-proxmox/internal/image"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// nodeSoftware is what nodes install, by node name.
type nodeSoftware struct {
	installers map[string]string
	// schematics are the ids of the installers' schematics, where they are known.
	schematics map[string]string
}

// softwareFor gives every node the installer of the schematic that it boots: any other would take its
// extensions away at the first upgrade.
func softwareFor(cfg spec.Config, args *TalosClusterArgs) (nodeSoftware, error) {
	s := nodeSoftware{installers: make(map[string]string, len(cfg.Nodes)), schematics: make(map[string]string, len(cfg.Nodes))}
	version := spec.Or(cfg.Talos.Version, "")
	for _, n := range cfg.Nodes {
		if given := args.Installers[n.Name]; given != "" {
			s.installers[n.Name] = given

			continue
		}
		img := cfg.Image(n)
		schematic, err := image.Resolve(img, version, args.ReadFile)
		if err != nil {
			return nodeSoftware{}, fmt.Errorf("image of node %q: %w", n.Name, err)
		}
		s.installers[n.Name] = image.Installer(img, schematic.ID, version)
		s.schematics[n.Name] = schematic.ID
	}

	return s, nil
}
