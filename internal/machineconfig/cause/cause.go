// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package cause finds the setting that a complaint of Talos about a machine configuration comes from.
package cause

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// documents are the settings that kinds of documents are made of, where that is one block; %s is the node.
var documents = map[string]string{
	"LinkConfig": "nodes.%s.networks", "LinkAliasConfig": "nodes.%s.networks", "HostnameConfig": "nodes.%s.hostname",
	"UserVolumeConfig": "nodes.%s.disks", "ExistingVolumeConfig": "nodes.%s.disks", "SwapVolumeConfig": "nodes.%s.disks",
	"WatchdogTimerConfig": "nodes.%s.watchdog", "PCIDriverRebindConfig": "nodes.%s.gpu",
	"VolumeConfig": "talos.diskEncryption", "RegistryMirrorConfig": "talos.registries", "RegistryAuthConfig": "talos.registries",
	"RegistryTLSConfig": "talos.registries", "TrustedRootsConfig": "talos.trustedRoots", "KmsgLogConfig": "talos.logDestinations",
	"ResolverConfig": "cluster.nameservers", "TimeSyncConfig": "cluster.timeServers", "Layer2VIPConfig": "cluster.vip",
	"StaticHostConfig": "cluster.extraHosts", "KubeAPIServerConfig": "kubernetes.apiServer", "KubeSchedulerConfig": "kubernetes.scheduler",
	"KubeControllerManagerConfig": "kubernetes.controllerManager", "KubeProxyConfig": "kubernetes.proxy",
	"KubeletConfig":              "kubernetes.kubelet",
	"KubeAuditPolicyConfig":      "kubernetes.apiServer.auditPolicy",
	"KubeAdmissionControlConfig": "kubernetes.apiServer.admissionPlugins",
}

// sections are the settings that parts of the machine configuration itself are made of, by a word of the complaint.
var sections = []struct{ word, setting string }{
	{"kubelet", "kubernetes.kubelet"}, {"etcd", "kubernetes.etcd"}, {"node labels", "nodes.%s.labels"}, {"nodeLabels", "nodes.%s.labels"},
	{"node annotations", "nodes.%s.annotations"}, {"node taints", "nodes.%s.taints"}, {"machine.files", "talos.files"},
	{"install disk", "nodes.%s.installDisk"}, {"controlplane endpoint", "cluster.endpoint"}, {"allowed roles", "talos.apiAccess.roles"},
	{"DNS name", "cluster.dnsDomain"}, {"manifest", "manifests"}, {"partition", "talos.diskEncryption"}, {"sysctl", "talos.sysctls"},
	{"logging", "talos.logDestinations"}, {"disk", "nodes.%s.disks"},
}

// document matches how complaints about a document begin.
var document = regexp.MustCompile(`^document (\S+)`)

// Of returns the path of the setting that a complaint about a node's configuration names, or whose value it names; "" where none
// can be found.
func Of(cfg spec.Config, node spec.NamedNode, complaint string) string {
	base := baseOf(node.Name, complaint)
	said := document.ReplaceAllString(complaint, "")
	best, found := 0, ""
	consider := func(path string, score int) {
		if base != "" && (path == base || strings.HasPrefix(path, base+".") || strings.HasPrefix(path, base+"[")) {
			score += underBase
		}
		if score > best {
			best, found = score, path
		}
	}
	if base != "" {
		consider(base, 1)
	}
	visit := func(path, name, value string) {
		switch {
		case mentions(said, value):
			consider(path, ofValue+len(value))
		case strings.Contains(said, `"`+name+`"`) && name != "":
			consider(path, ofQuoted+strings.Count(path, "."))
		case mentions(said, name):
			consider(path, ofName+len(name)+strings.Count(path, "."))
		}
	}
	walk(check.Key("nodes", node.Name), reflect.ValueOf(node.Node), visit)
	walk("cluster", reflect.ValueOf(cfg.Cluster), visit)
	walk("talos", reflect.ValueOf(cfg.Talos), visit)
	walk("kubernetes", reflect.ValueOf(cfg.Kubernetes), visit)

	return found
}

// What speaks for a setting: it stands in the block that the document is made of, its value is told, its name is quoted,
// its name is told.
const (
	underBase = 10000
	ofValue   = 500
	ofQuoted  = 300
	ofName    = 100
)

// baseOf returns the block of settings that the document, or the part of it, is made of.
func baseOf(node, complaint string) string {
	base := ""
	if kind := document.FindStringSubmatch(complaint); kind != nil {
		base = documents[strings.TrimSuffix(kind[1], ":")]
	}
	for _, s := range sections {
		if base == "" && strings.Contains(complaint, s.word) {
			base = s.setting
		}
	}
	if strings.Contains(base, "%s") {
		base = fmt.Sprintf(base, node)
	}

	return base
}

// mentions reports whether a complaint has a text as a word: a short one only where it is quoted.
func mentions(complaint, text string) bool {
	if text == "" {
		return false
	}
	if strings.Contains(complaint, `"`+text+`"`) {
		return true
	}
	if len(text) <= 3 {
		return false
	}
	at := strings.Index(complaint, text)

	return at >= 0 && !continues(complaint, at-1) && !continues(complaint, at+len(text))
}

// continues reports whether the word goes on at a place of a text.
func continues(text string, at int) bool {
	if at < 0 || at >= len(text) {
		return false
	}
	c := text[at]

	return c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// walk visits every setting below a value: its path, its name, and its value as text where it is one. Secrets are left out.
func walk(path string, v reflect.Value, visit func(path, name, value string)) {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	switch value := v.Interface().(type) {
	case spec.Secret:
		return
	case spec.Text:
		walkText(path, value, visit)

		return
	}
	switch v.Kind() {
	case reflect.Struct:
		walkFields(path, v, visit)
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			at := check.Key(path, it.Key().String())
			visit(at, it.Key().String(), "")
			walk(at, it.Value(), visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			walk(check.Index(path, i), v.Index(i), visit)
		}
	case reflect.String, reflect.Int:
		visit(path, "", fmt.Sprint(v.Interface()))
	}
}

// walkFields visits every setting of a block.
func walkFields(path string, v reflect.Value, visit func(path, name, value string)) {
	for _, f := range spec.Fields(v.Type()) {
		if field := v.FieldByIndex(f.Index); !field.IsZero() && f.Name != "patches" {
			at := check.Join(path, f.Name)
			visit(at, f.Name, "")
			walk(at, field, visit)
		}
	}
}

// walkText visits every field of free text that is YAML.
func walkText(path string, text spec.Text, visit func(path, name, value string)) {
	var tree yaml.Node
	if yaml.Unmarshal([]byte(text), &tree) == nil && len(tree.Content) == 1 {
		walkTree(path, tree.Content[0], visit)
	}
}

// walkTree visits every field of a tree of YAML.
func walkTree(path string, node *yaml.Node, visit func(path, name, value string)) {
	for i, item := range node.Content {
		switch {
		case node.Kind == yaml.SequenceNode:
			walkTree(check.Index(path, i), item, visit)
		case node.Kind == yaml.MappingNode && i%2 == 1:
			name := node.Content[i-1].Value
			at := check.Key(path, name)
			visit(at, name, "")
			walkTree(at, item, visit)
		}
	}
	if node.Kind == yaml.ScalarNode {
		visit(path, "", node.Value)
	}
}
