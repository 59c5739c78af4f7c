// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package rules holds every rule about a value, whoever calls: a stack file, a component, a command.
package rules

import (
	"reflect"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/addons"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/networks"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/talos"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/vms"
	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Check records everything that is wrong with the configuration, defaults included, at the path of the
// field: "nodes.work-01.memory". Each problem names the value, the rule and what would be right. It
// never prints a secret or free text. It returns what it checked: the configuration with its defaults.
func Check(c spec.Config, l *check.List) spec.Config { return CheckAll(c, Inputs{}, l) }

// Inputs hold what rules look at beside the configuration.
type Inputs struct {
	// ReadFile reads a file of the project by its path; nil where there are none to read, and images are not checked.
	ReadFile func(path string) ([]byte, error)
	// Environment looks up the variables that the Proxmox provider takes its access from; nil where access does not matter.
	Environment func(name string) string
}

// CheckAll checks what [Check] does, and the images' files and how Proxmox VE will be asked.
func CheckAll(c spec.Config, in Inputs, l *check.List) spec.Config {
	s := scope.New(c, l)
	if in.Environment != nil {
		s.Access = WithEnvironment(s.Config.Proxmox, in.Environment)
	}
	s.Files = in.ReadFile
	r := &rules{s}
	r.tags()
	vms.Check(s)
	if in.Environment != nil {
		CheckAccess(s.Config.Proxmox, in.Environment, l)
	}
	networks.CheckShared(s)
	for _, n := range s.Config.Nodes {
		vms.CheckNode(s, n)
		networks.CheckNode(s, n)
	}
	believed := s.Believed()
	networks.Check(believed)
	talos.Check(believed)
	addons.Check(believed)
	r.lifecycle()
	if _, err := versions.ParseTalos(*s.Config.Talos.Version); err == nil && in.ReadFile != nil && !s.Wrong("talos.version") {
		// which extensions there are depends on the version
		for _, name := range scope.SortedKeys(s.Config.Images) {
			vms.CheckImage(check.Key("images", name), s.Config.Images[name], *s.Config.Talos.Version, in.ReadFile, l)
		}
	}

	return s.Config
}

// CheckNodes records what is wrong with the nodes themselves, apart from what else the cluster is made
// of: for a caller that has nodes and no cluster.
func CheckNodes(c spec.Config, l *check.List) {
	s := scope.New(c, l)
	vms.CheckFirmware(s)
	for _, n := range s.Config.Nodes {
		checkTags(scope.NodePath(n), reflect.ValueOf(n.Node), l)
		vms.CheckNode(s, n)
		networks.CheckNode(s, n)
	}
}

// CheckProxmox records what is wrong with how Proxmox VE is reached, for a caller that has no cluster. It returns the
// settings with their defaults.
func CheckProxmox(p spec.Proxmox, l *check.List) spec.Proxmox {
	s := scope.New(spec.Config{Proxmox: p}, l)
	checkTags("proxmox", reflect.ValueOf(s.Config.Proxmox), l)
	vms.CheckProxmox(s)

	return s.Config.Proxmox
}

// CheckArgoCD records settings that only Flux has, and that Argo CD would leave without effect, at their
// paths under at.
func CheckArgoCD(g spec.GitOps, at string, l *check.List) { addons.CheckArgoCD(g, at, l) }

// CheckImage records what is wrong with an image, complete with its defaults, for a Talos version, at the path of the field.
// readFile reads the schematic file by its path relative to the project directory.
func CheckImage(path string, img spec.Image, talosVersion string, readFile func(string) ([]byte, error), l *check.List) {
	vms.CheckImage(path, img, talosVersion, readFile, l)
}

// CheckBlockName returns what is wrong with the name that a user gives a block of settings, such as a
// network or a size; "" when nothing is.
func CheckBlockName(name string) string { return scope.CheckBlockName(name) }

// rules look at one configuration.
type rules struct{ *scope.Scope }

// tags checks what the types themselves say: allowed values, bounds, required fields.
func (r *rules) tags() {
	v := reflect.ValueOf(r.Config)
	for _, f := range spec.Fields(v.Type()) {
		if f.Name != "nodes" {
			checkTags(f.Name, v.FieldByIndex(f.Index), r.List)
		}
	}
	for _, n := range r.Config.Nodes {
		checkTags(scope.NodePath(n), reflect.ValueOf(n.Node), r.List)
	}
}
