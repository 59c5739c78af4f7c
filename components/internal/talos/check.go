// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"errors"
	"fmt"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/image"
	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/internal/preflight"
	"github.com/talos-proxmox/talos-proxmox/internal/rules"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Request describes the cluster that a caller asks for.
type Request struct {
	// Name of the cluster in errors.
	Name string
	// Config is complete: defaults are filled in.
	Config spec.Config
	// Installers are installer images by node name, in place of the factory's.
	Installers map[string]string
	Charts     manifests.Cache
	ReadFile   func(string) ([]byte, error)
}

// Checked holds what configurations and day-0 manifests are made from.
type Checked struct {
	Input machineconfig.Input

	dayZero manifests.Input
	// schematics by node name; missing where only the version of Talos counts.
	schematics map[string]string
}

// Check finds everything that is wrong with a cluster, Talos's own rules included, before anything is
// registered. It renders every node's configuration with throw-away secrets.
func Check(ctx context.Context, r Request) (*Checked, error) {
	var problems check.List
	rules.CheckAll(r.Config, rules.Inputs{ReadFile: r.ReadFile}, &problems)
	if err := problems.Err("cluster " + r.Name); err != nil {
		preflight.Beside(problems.Problems(), r.Config, r.ReadFile, &problems)

		return nil, problems.Err("cluster " + r.Name)
	}

	day, list, notMade := dayZero(ctx, manifests.Input{
		Config: r.Config, Charts: r.Charts, ReadFile: r.ReadFile, Renders: &manifests.Renders{},
	})
	if notMade != nil {
		notMade = fmt.Errorf("cluster %q: %w", r.Name, notMade)
	}
	c := &Checked{dayZero: day, schematics: map[string]string{}}
	installers, err := c.installers(r)
	if err != nil {
		return nil, fmt.Errorf("cluster %q: %w", r.Name, err)
	}
	c.Input = machineconfig.Input{Config: r.Config, Manifests: list, Installer: installers, ReadFile: r.ReadFile}
	if c.Input.Config.Manifests.Extra, err = manifests.ExtraURLs(r.Config); err != nil {
		return nil, fmt.Errorf("cluster %q: %w", r.Name, err)
	}
	machineconfig.Check(c.Input, &problems)

	if err := errors.Join(problems.Err("cluster "+r.Name), notMade); err != nil {
		return nil, err
	}

	return c, nil
}

// installers returns each node's installer image, by name: that of the schematic which it boots, since any
// other would take its extensions away at the first upgrade.
func (c *Checked) installers(r Request) (map[string]string, error) {
	images := make(map[string]string, len(r.Config.Nodes))
	version := *r.Config.Talos.Version
	for _, n := range r.Config.Nodes {
		if given := r.Installers[n.Name]; given != "" {
			images[n.Name] = given

			continue
		}
		img := r.Config.Image(n)
		schematic, err := image.Resolve(img, version, r.ReadFile)
		if err != nil {
			return nil, fmt.Errorf("image of node %q: %w", n.Name, err)
		}
		images[n.Name] = image.Installer(img, schematic.ID, version)
		c.schematics[n.Name] = schematic.ID
	}

	return images, nil
}
