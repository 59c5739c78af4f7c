// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/internal/preflight"
	"github.com/talos-proxmox/talos-proxmox/internal/rules"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Project is the name of the Pulumi project, with which every key of a stack file begins.
const Project = "talos-proxmox"

// Source holds a stack's configuration as Pulumi hands it to a program.
type Source struct {
	// Project is the Pulumi project's name; [Project] when unset.
	Project string
	// Stack is the stack's name.
	Stack string
	// Dir is the project directory, where the stack file is looked for; it gives problems their
	// lines and says which values are secure. Without it both stay unknown.
	Dir string
	// File is the stack file where it is not the stack's own, Pulumi.<stack>.yaml in Dir or where Pulumi.yaml
	// says.
	File string
	// FileUnknown reports that nobody knows which file Pulumi read: lines stay unknown then.
	FileUnknown bool
	// Values are the configuration's keys with their values: text, or JSON for structured ones. It
	// is what the environment variable PULUMI_CONFIG holds.
	Values map[string]string
	// SecretKeys are the keys that hold a secret somewhere, as in PULUMI_CONFIG_SECRET_KEYS.
	SecretKeys []string
	// Environment looks up the variables that the Proxmox provider takes its access from, such as
	// [os.Getenv]; nil where the hosts are not asked for anything, so that access does not matter.
	Environment func(name string) string
}

// Stack holds a stack file after it was read and expanded.
type Stack struct {
	spec.Config

	// SecureValues are the values that were written secure, so that they can be kept secret
	// wherever they go.
	SecureValues []string

	// locate turns a problem with the configuration into one with the file; nil for a stack that no [Load] made.
	locate func(spec.Problem) spec.Problem
	// source is what the stack was read from.
	source Source
}

// Load reads, expands and checks a stack's configuration. The error is a [*spec.InvalidError] with
// every problem, sorted by path, with lines where the stack file is known. It never prints a
// secret.
func Load(s Source) (*Stack, error) {
	project := s.Project
	if project == "" {
		project = Project
	}
	d := &decoder{broken: map[string]bool{}, secretKeys: map[string]bool{}, secureKeys: map[string]bool{}}
	values := map[string]*yaml.Node{}
	for _, key := range slices.Sorted(maps.Keys(s.Values)) {
		if name, ours := strings.CutPrefix(key, project+":"); ours {
			values[name] = parseValue(s.Values[key])
		}
	}
	for _, key := range s.SecretKeys {
		d.secretKeys[strings.TrimPrefix(key, project+":")] = true
	}
	d.project = project
	file := findFile(s, project, values)
	if file != nil {
		d.written = file.written
		d.refuseStray(project, file)
	}
	d.refuseForeign(project, slices.Sorted(maps.Keys(s.Values)))

	var f File
	d.decodeStruct("", mappingOf(values), reflect.ValueOf(&f).Elem())
	d.refuseLostSecrets(values)
	config, e := expand(f)
	config, problems := d.validate(config, e, s)
	locate := func(p spec.Problem) spec.Problem {
		if file != nil {
			p.Line = file.lineOf(p.Path)
		}

		return d.hideSecure(p)
	}
	problems.Map(locate)
	if err := problems.Err("stack " + s.Stack); err != nil {
		return nil, err
	}
	slices.Sort(d.secure)

	return &Stack{
		Config: config, SecureValues: slices.Compact(d.secure), source: s,
		locate: func(p spec.Problem) spec.Problem {
			p.Path = e.origin(p.Path)

			return locate(p)
		},
	}, nil
}

// request returns what is looked at beside the rules, without a network.
func (s Source) request(c spec.Config) preflight.Request {
	return preflight.Request{
		Config: c, Charts: manifests.ProjectCache(s.Dir, nil), CachedCharts: true, GitOps: true, ReadFile: s.readFile,
	}
}

// readFile reads a file of the project.
func (s Source) readFile(path string) ([]byte, error) {
	if !filepath.IsLocal(path) {
		return nil, fmt.Errorf("%q is not a path inside the project", path)
	}

	text, err := os.ReadFile(filepath.Join(s.Dir, path))
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		return nil, at.Err // the caller names the path as the stack file does
	}

	return text, err
}

// parseValue reads a configuration value: JSON, or text that is taken as it stands.
func parseValue(text string) *yaml.Node {
	var document yaml.Node
	if (strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")) && json.Valid([]byte(text)) {
		if err := yaml.Unmarshal([]byte(text), &document); err == nil && len(document.Content) == 1 {
			return document.Content[0]
		}
	}

	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}

func mappingOf(values map[string]*yaml.Node) *yaml.Node {
	node := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		node.Content = append(node.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name}, values[name])
	}

	return node
}

// validate completes the configuration and gathers the problems of reading, of expansion and of the rules. Rules about values that
// could not be read are left out, and a problem is reported where its value is written.
func (d *decoder) validate(c spec.Config, e *expansion, s Source) (spec.Config, *check.List) {
	all := &check.List{}
	for _, p := range d.problems.Problems() {
		all.Add(p)
	}
	var found check.List
	for _, p := range e.problems.Problems() {
		found.Add(p)
	}
	for _, p := range e.fileRules() {
		found.Add(p)
	}
	expanded := map[string]bool{}
	for _, p := range found.Problems() {
		expanded[p.Path] = true
	}
	var ofConfig check.List
	complete := rules.CheckAll(c, rules.Inputs{ReadFile: s.readFile, Environment: s.Environment}, &ofConfig)
	if broken := slices.Concat(all.Paths(), found.Paths(), ofConfig.Paths()); len(broken) > 0 { // else Check says what else is wrong
		preflight.Beside(context.Background(), broken, s.request(c), &ofConfig)
	}
	for _, p := range ofConfig.Problems() {
		if d.isBroken(p.Path) || d.follows(p.Path) {
			continue
		}
		p.Path = e.blame(p.Path, ofConfig.Other(p))
		if !expanded[p.Path] { // else the mistake is reported already
			found.Add(p)
		}
	}
	for _, p := range found.Problems() {
		if !d.isBroken(p.Path) {
			all.Add(p)
		}
	}

	return complete, all
}

// isBroken reports whether the value at the path, or something around or inside it, could not be read;
// for settings of a network, also whether another one of it could not, since they hang together.
func (d *decoder) isBroken(path string) bool {
	for at := path; at != ""; at = check.Parent(at) {
		if d.broken[at] {
			return true
		}
	}
	for broken := range d.broken {
		if below := sharedSetting(broken); below != "" && ownSetting(path) == below {
			return true
		}
		if parent := check.Parent(broken); strings.Contains(parent, ".networks") && parent == check.Parent(path) {
			return true
		}
		if strings.HasPrefix(broken, path) && (len(broken) == len(path) || strings.ContainsRune(".[", rune(broken[len(path)]))) {
			return true
		}
	}

	return false
}

// sharedSetting returns which setting of nodes a path below defaults, sizes or pools is; "" for other paths.
func sharedSetting(path string) string {
	elements := check.Elements(path)
	if len(elements) < 3 || elements[0] != "defaults" && elements[0] != "sizes" && elements[0] != "pools" {
		return ""
	}

	return strings.TrimPrefix(path[len(check.Head(path, 2)):], ".")
}

// ownSetting returns which setting of a node or a pool a path is; "" for other paths.
func ownSetting(path string) string {
	if elements := check.Elements(path); len(elements) < 3 || elements[0] != "nodes" && elements[0] != "pools" {
		return ""
	}

	return strings.TrimPrefix(path[len(check.Head(path, 2)):], ".")
}

// switches are settings on which the meaning of others hangs: while one cannot be read, nothing is said of those.
var switches = map[string][]string{
	"gitops.provider": {"gitops"}, "gitops.method": {"gitops"}, "gitops.git.auth.type": {"gitops.git.auth"},
	"gitops.git.url": {"gitops.git.auth"},
	"cni.name":       {"cni", "kubernetes.proxy"}, "cni.cilium": {"kubernetes.proxy"},
	"talos.version": {"image", "images", "kubernetes.version", "talos.contract"}, "kubernetes.version": {"talos.version"},
	"proxmox.hosts": {"proxmox.defaultHost", "nodes", "pools"}, "proxmox.username": {"proxmox"}, "proxmox.password": {"proxmox"},
	"proxmox.apiToken": {"proxmox"}, "cluster.vmIdBase": {"nodes", "pools"},
}

// follows reports whether a problem at the path only follows from a setting that could not be read.
func (d *decoder) follows(path string) bool {
	for broken := range d.broken {
		for at := broken; at != ""; at = check.Parent(at) {
			for _, hangs := range switches[at] {
				if path == hangs || strings.HasPrefix(path, hangs+".") || strings.HasPrefix(path, hangs+"[") {
					return true
				}
			}
		}
	}

	return false
}

// blame returns where in the file to report a problem between two settings, of which other may be "": where one is
// written for fewer nodes, this is the one that does not go with the rest.
func (e *expansion) blame(path, other string) string {
	at := e.origin(path)
	if other == "" {
		return at
	}
	if beside := e.origin(other); generality(beside) < generality(at) {
		return beside
	}

	return at
}

// generality returns for how many nodes a setting may be: the more, the higher.
func generality(path string) int {
	switch elements := check.Elements(path); elements[0] {
	case "nodes":
		return 0
	case "pools":
		return 1
	case "sizes":
		return 2
	case "defaults":
		if len(elements) > 1 && elements[1] != "all" {
			return 3
		}

		return 4
	default:
		return 5
	}
}

// origin returns where in the file the value at the configuration's path is written.
func (e *expansion) origin(path string) string {
	parts := check.Elements(path)
	switch {
	case len(parts) >= 2 && parts[0] == "nodes":
		rel := strings.TrimPrefix(path[len(check.Head(path, 2)):], ".")
		if ls, ok := e.layers[parts[1]]; ok {
			return ls.origin(rel)
		}
	case len(parts) >= 2 && parts[0] == "images":
		rel := strings.TrimPrefix(path[len(check.Head(path, 2)):], ".")
		img, ok := e.file.Images[parts[1]]
		if !ok || (rel != "" && !has(reflect.ValueOf(img), check.Elements(rel)) && has(reflect.ValueOf(e.file.Image), check.Elements(rel))) {
			return check.Join("image", rel)
		}
	}

	return path
}
