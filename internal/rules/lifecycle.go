// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rules

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/credential"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// longestCertificate is how long client certificates live.
const longestCertificate = spec.Duration(365 * 24 * time.Hour)

// replaceable are the fields whose edit replaces a VM, and which allowReplace can name.
var replaceable = []string{"*", "efiDisk", "host", "tpm", "vmId"}

// lifecycle checks how a living cluster is changed and what is written beside the outputs.
func (r *rules) lifecycle() {
	c := r.Config.Lifecycle
	for name, d := range map[string]*spec.Duration{
		"readyTimeout": c.ReadyTimeout, "applyTimeout": c.ApplyTimeout, "upgradeTimeout": c.UpgradeTimeout,
		"drainTimeout": c.DrainTimeout, "kubeconfigRenewal": c.KubeconfigRenewal,
		"callTimeout": c.CallTimeout,
	} {
		r.Positive("lifecycle."+name, d)
	}
	if *c.KubeconfigRenewal >= longestCertificate {
		r.Addf("lifecycle.kubeconfigRenewal", "is as long as certificates live, 8760h: write less, such as 720h")
	}
	for _, node := range scope.SortedKeys(c.AllowReplace) {
		at := check.Key("lifecycle.allowReplace", node)
		r.knownNode(at, node)
		if len(c.AllowReplace[node]) == 0 {
			r.Addf(at, "permits nothing: name what may differ (%s), or remove it", strings.Join(replaceable, ", "))
		}
		for i, field := range c.AllowReplace[node] {
			if !slices.Contains(replaceable, field) {
				r.Addf(check.Index(at, i), "%s", scope.NotOneOf(field, replaceable))
			}
		}
	}
	for _, node := range scope.SortedKeys(c.Replace) {
		at := check.Key("lifecycle.replace", node)
		r.knownNode(at, node)
		if c.Replace[node] < 0 {
			r.Addf(at, "%d is below 0: count up from 1", c.Replace[node])
		}
	}
	r.snapshotDirectory("lifecycle.snapshotDirectory", c.SnapshotDirectory)
	if said := r.Said.Lifecycle; said.SnapshotsKept != nil && said.SnapshotDirectory == nil {
		r.Addf("lifecycle.snapshotsKept", "is for lifecycle.snapshotDirectory, which is not set: add that, or remove it")
	}
	r.Twice("lifecycle.force", c.Force)
	for i, node := range c.Force {
		if !scope.LabelForm.MatchString(node) {
			r.Addf(check.Index("lifecycle.force", i), "%q is no name of a node", node)
		}
	}
	r.output()
}

// snapshotDirectory checks where snapshots of etcd are kept.
func (r *rules) snapshotDirectory(at string, directory *string) {
	switch {
	case directory == nil:
	case strings.TrimSpace(*directory) == "":
		r.Addf(at, "is empty: write a path, or remove it")
	case notAPath(*directory):
		r.Addf(at, "%q %s", *directory, noPath)
	}
}

// knownNode records a name that no node has.
func (r *rules) knownNode(path, name string) {
	if _, ok := r.Config.Node(name); ok {
		return
	}
	names := make([]string, 0, len(r.Config.Nodes))
	for _, n := range r.Config.Nodes {
		names = append(names, n.Name)
	}
	hint := ": name a node of this cluster, or remove it"
	if best := check.Nearest(name, names); best != "" {
		hint = "; did you mean \"" + best + "\"?"
	}
	r.Addf(path, "there is no node %q%s", name, hint)
}

// stackFile are files that Pulumi and Go read.
var stackFile = regexp.MustCompile(`^(Pulumi(\.[^/]+)?\.yaml|go\.(mod|sum)|[^/]+\.go)$`)

// noPath says what is wrong with a text that is no path.
const noPath = "is no path of this machine, since nothing reads addresses or variables there: write the path itself"

// notAPath reports whether a path is an address, or names a variable as shells do.
func notAPath(path string) bool {
	return strings.Contains(path, "://") || strings.ContainsRune(path, '$')
}

// outputPath checks where something is written, and reports whether that is a path.
func (r *rules) outputPath(at, file string) bool {
	clean := path.Clean(file)
	switch {
	case strings.TrimSpace(file) == "":
		r.Addf(at, "is empty: write a path, or remove it")

		return false
	case notAPath(file):
		r.Addf(at, "%q %s", file, noPath)
	case strings.HasPrefix(clean, "~"):
		r.Addf(at, "%q begins with a tilde, which only shells read: write the directory itself", file)
	case !path.IsAbs(clean) && !scope.InProject(file):
		r.Addf(at, "%q leaves the project: write a path inside it, or one from / on", file)
	case at != "output.machineConfigDirectory" && (clean == "." || strings.HasSuffix(file, "/")):
		r.Addf(at, "%q is a directory: write the file's name too", file)
	case stackFile.MatchString(clean):
		r.Addf(at, "%q is a file of the project: choose another path", file)
	}

	return true
}

// outputApart checks that a path is no other output's, and that no file is a directory of another.
func (r *rules) outputApart(at, file string, seen map[string]string) {
	const directory = "output.machineConfigDirectory"
	for _, other := range scope.SortedKeys(seen) {
		switch {
		case other == file:
			r.Addf(at, "%q is also %s: choose another path", file, seen[other])
		case strings.HasPrefix(file, other+"/") && seen[other] != directory:
			r.Addf(at, "%q is inside %s, which is a file: choose another path", file, seen[other])
		case strings.HasPrefix(other, file+"/") && at != directory:
			r.Addf(at, "%q is a directory of %s: choose another path", file, seen[other])
		}
	}
}

// output checks what is written beside the stack's outputs.
func (r *rules) output() {
	o := r.Config.Output
	seen := map[string]string{}
	for _, f := range []struct {
		path string
		file *string
	}{
		{"output.kubeconfigFile", o.KubeconfigFile}, {"output.talosconfigFile", o.TalosconfigFile},
		{"output.machineConfigDirectory", o.MachineConfigDirectory},
	} {
		if f.file == nil {
			continue
		}
		if r.outputPath(f.path, *f.file) {
			file := path.Clean(*f.file)
			r.outputApart(f.path, file, seen)
			seen[file] = f.path
		}
	}
	r.outputNodes(seen)
	if s := o.Store; s != nil {
		r.store(*s)
	}
}

// outputNodes checks that no node's configuration is written over another output.
func (r *rules) outputNodes(seen map[string]string) {
	if r.Config.Output.MachineConfigDirectory == nil {
		return
	}
	for _, n := range r.Config.Nodes {
		file := path.Join(*r.Config.Output.MachineConfigDirectory, n.Name+".yaml")
		if at := seen[file]; at != "" {
			r.Addf(at, "%q is also where the configuration of node %s is written: choose another path", file, n.Name)
		}
	}
}

// store checks where credentials are stored.
func (r *rules) store(s spec.CredentialStore) {
	if s.KubeconfigName == nil && s.TalosconfigName == nil {
		r.Addf("output.store", "needs kubeconfigName or talosconfigName")
	}
	if s.KubeconfigName != nil && s.TalosconfigName != nil && *s.KubeconfigName == *s.TalosconfigName {
		r.Addf("output.store.talosconfigName", "%q is also the kubeconfig's name: choose another", *s.TalosconfigName)
	}
	r.storeCommand(s.Command)
}

// storeCommand checks the command that takes a credential.
func (r *rules) storeCommand(command []string) {
	if len(command) == 0 {
		r.Addf("output.store.command", "is required: write the command that takes a secret on its standard input, "+
			`such as ["vault", "kv", "put", "secret/{name}", "value=-"]`)
	}
	for i, arg := range command {
		if i == 0 || credential.Refers(arg) || strings.Contains(arg, "{name}") {
			continue
		}
		flag := strings.TrimLeft(command[i-1], "-")
		if strings.HasPrefix(command[i-1], "-") && (credential.Sensitive(flag) || (flag == "u" || flag == "user") && strings.Contains(arg, ":")) {
			r.Addf(check.Index("output.store.command", i), "holds the value of -%s in plain text, which every process of the machine may read: "+
				"let the command take it from its environment or a file", flag)
		}
	}
	if len(command) > 0 && !slices.ContainsFunc(command[1:], func(arg string) bool { return strings.Contains(arg, "{name}") }) {
		r.Addf("output.store.command", "has no argument with {name}, so that both secrets would get one name: add it")
	}
}
