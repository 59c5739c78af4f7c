// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package preflight finds what can be known of a configuration beside the rules, without a cluster: what Talos says of each
// node's machine configuration, and what is wrong with charts and manifests.
package preflight

import (
	"context"
	"errors"
	"time"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/gitops"
	"github.com/talos-proxmox/talos-proxmox/internal/image"
	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Request names the cluster that is looked at, and what it takes to look.
type Request struct {
	// Config is complete: defaults are filled in.
	Config spec.Config
	// Installers are installer images by node name, in place of the factory's.
	Installers map[string]string
	// Charts holds the chart archives.
	Charts manifests.Cache
	// CachedCharts passes over charts that are not in the cache, which only a network can tell of.
	CachedCharts bool
	// GitOps has the GitOps controller looked at too.
	GitOps bool
	// ReadFile reads a file of the project.
	ReadFile func(string) ([]byte, error)
}

// Made holds what came out on the way.
type Made struct {
	// Machines are what machine configurations are made from; their Config has the GitOps controller where Talos installs it.
	Machines machineconfig.Input
	// DayZero is what day-0 manifests are made from, with fresh certificates where the pod network needs some.
	DayZero manifests.Input
	// Schematics by node name; missing where an installer was given.
	Schematics map[string]string
}

// Check records what is wrong with a configuration of which no rule is broken. It renders charts, and every node's
// configuration with throw-away secrets.
func Check(ctx context.Context, r Request, l *check.List) Made {
	m, found := r.make(ctx)
	l.AddError("manifests", found)
	machineconfig.Check(m.Machines, l)

	return m
}

// make makes everything that machine configurations are made from. The error joins what is wrong.
func (r Request) make(ctx context.Context) (Made, error) {
	cfg := r.Config
	var found []error
	if r.GitOps {
		found = append(found, r.known(gitops.CheckChart(ctx, cfg, r.Charts)))
		with, err := gitops.DayZero(cfg)
		if err == nil {
			cfg = with
		}
		found = append(found, err)
	}
	m := Made{Schematics: map[string]string{}}
	m.DayZero = manifests.Input{Config: cfg, Charts: r.Charts, ReadFile: r.ReadFile, Renders: &manifests.Renders{}}
	if cfg.UsesCilium() {
		made, err := manifests.NewCertificates(spec.Value(cfg.Cluster.Name), time.Now())
		m.DayZero.Certificates = &made
		found = append(found, err)
	}
	list, err := manifests.DayZero(ctx, m.DayZero)
	found = append(found, r.known(err))
	installers, err := r.installers(m.Schematics)
	found = append(found, err)
	m.Machines = machineconfig.Input{Config: cfg, Manifests: list, Installer: installers, ReadFile: r.ReadFile}
	m.Machines.Config.Manifests.Extra, err = manifests.ExtraURLs(cfg)
	found = append(found, err)

	return m, errors.Join(found...)
}

// known leaves out of an error that a chart is not in the cache, where that is nobody's mistake.
func (r Request) known(err error) error {
	if !r.CachedCharts {
		return err
	}
	var rest []error
	for _, one := range check.Split(err) {
		if !errors.Is(one, manifests.ErrNotCached) {
			rest = append(rest, one)
		}
	}

	return errors.Join(rest...)
}

// installers returns each node's installer image, by name: that of the schematic which it boots, since any
// other would take its extensions away at the first upgrade. It notes the schematics.
func (r Request) installers(schematics map[string]string) (map[string]string, error) {
	images := make(map[string]string, len(r.Config.Nodes))
	version := *r.Config.Talos.Version
	var found []error
	for _, n := range r.Config.Nodes {
		if given := r.Installers[n.Name]; given != "" {
			images[n.Name] = given

			continue
		}
		img := r.Config.Image(n)
		schematic, err := image.Resolve(img, version, r.ReadFile)
		if err != nil {
			found = append(found, check.At(check.Join(check.Key("nodes", n.Name), "image"), err))

			continue
		}
		images[n.Name] = image.Installer(img, schematic.ID, version)
		schematics[n.Name] = schematic.ID
	}

	return images, errors.Join(found...)
}
