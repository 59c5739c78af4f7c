// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"fmt"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/components/internal/stash"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// softwareState holds what the state remembers of what a node runs.
type softwareState struct {
	Edit      string `json:"edit"`
	Schematic string `json:"schematic"`
	Talos     string `json:"talos"`
}

// registerUpgrades registers what each node runs. When it changes the node is upgraded in place: control
// planes one after the other, then workers, as many at a time as may be unavailable. A node that fails keeps
// its old value in the state, so that the next run goes on there.
func registerUpgrades(
	b *Build, applies map[string]*machine.ConfigurationApply, members pulumi.Resource,
) ([]pulumi.Resource, error) {
	edits, err := imageEdits(b)
	if err != nil {
		return nil, err
	}
	order := rollout.Order(b.Cluster.Members, *b.Config.Lifecycle.MaxUnavailable)
	registered := make(map[string]pulumi.Resource, len(b.Config.Nodes))
	upgraded := make([]pulumi.Resource, 0, len(b.Config.Nodes))
	for _, n := range planesFirst(b.Config) {
		var earlier []pulumi.Resource
		for _, m := range order[n.Name] {
			earlier = append(earlier, registered[m.Name])
		}
		made, err := registerUpgrade(b, n, edits[variantOf(n)],
			pulumi.DependsOn([]pulumi.Resource{applies[n.Name], members}), b.afterIfLiving(earlier...))
		if err != nil {
			return nil, err
		}
		registered[n.Name] = made
		upgraded = append(upgraded, made)
	}

	return upgraded, nil
}

// imageEdits returns, by image variant, tokens that change with each edit of what its nodes run.
func imageEdits(b *Build) (map[string]pulumi.StringInput, error) {
	edits := map[string]pulumi.StringInput{}
	for _, n := range b.Config.Nodes {
		variant := variantOf(n)
		if edits[variant] != nil {
			continue
		}
		wanted := pulumi.String(*b.Config.Talos.Version + " " + b.Checked.Schematics[n.Name])
		edit, err := stash.EditToken(b.Ctx, b.Name+"-"+variant+"-image-edit", wanted, pulumi.Parent(b.Parent))
		if err != nil {
			return nil, err
		}
		edits[variant] = edit
	}

	return edits, nil
}

// variantOf returns the image variant that a node boots.
func variantOf(n spec.NamedNode) string { return spec.Value(n.Node.Image) }

// registerUpgrade registers what one node runs.
func registerUpgrade(
	b *Build, n spec.NamedNode, edit pulumi.StringInput, after ...pulumi.ResourceOption,
) (pulumi.Resource, error) {
	image := cluster.Image{
		Version: *b.Config.Talos.Version, Schematic: b.Checked.Schematics[n.Name], Installer: b.Checked.Machines.Installer[n.Name],
	}
	run := func(step hook.Step) error {
		began := time.Now()
		b.locate(step, n.Name)
		step.Within(time.Duration(*b.Config.Lifecycle.UpgradeTimeout))
		remote, err := b.APIs.openLiving(b.Ctx.Context(), b.reporting(step))
		if err != nil {
			return err
		}

		err = rollout.Upgrade{
			Access: remote, Cluster: b.Cluster, Gate: b.Gate, Drain: drainOf(b.Config.Lifecycle),
			Poll: pollOptions(b.Config.Lifecycle, b.Config.Lifecycle.UpgradeTimeout), Report: b.reporting(step),
			Snapshots: snapshotsOf(b.Session, remote),
		}.Run(b.Ctx.Context(), memberOf(n), image)
		if err == nil {
			b.work.Did("Talos "+image.Version, n.Name, began, time.Now())
		}

		return err
	}
	on := stash.On[softwareState]{
		Plan: func(_ hook.Step, was, now softwareState) error { return refuseTalosStep(n.Name, was, now) },
		Update: func(step hook.Step, _, _ softwareState) error {
			return run(step)
		},
	}
	if b.adopted() {
		// Nobody knows what the nodes of a cluster run that was made elsewhere.
		on.Create = func(step hook.Step, _ softwareState) error { return run(step) }
	}

	return stash.RememberInputs(b.Ctx, b.Name+"-"+n.Name+"-version", pulumi.StringMap{
		"edit": edit, "schematic": pulumi.String(image.Schematic), "talos": pulumi.String(image.Version),
	}, on, append(after, pulumi.Parent(b.Parent))...)
}

// refuseTalosStep refuses, in the preview already, a step that Talos does not take.
func refuseTalosStep(node string, was, now softwareState) error {
	from, errFrom := versions.ParseTalos(was.Talos)
	to, errTo := versions.ParseTalos(now.Talos)
	if errFrom != nil || errTo != nil {
		return nil //nolint:nilerr // the node itself says what it runs, at up
	}
	if err := versions.TalosStep(from, to); err != nil {
		return fmt.Errorf("node %s: talos.version: %w", node, err)
	}

	return nil
}
