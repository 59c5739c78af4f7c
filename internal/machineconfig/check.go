// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig/cause"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// shownNodes is how many nodes a problem that many share names.
const shownNodes = 3

// Check renders every node's configuration with throw-away secrets and records what Talos would
// refuse, before anything is created: each problem names the setting it came from, the document and
// the nodes. A patch is blamed only for what is wrong after it and was right before.
func Check(in Input, l *check.List) {
	bundle, err := ThrowAwaySecrets()
	if err != nil {
		l.Addf("talos", "making secrets for the check: %v", err)

		return
	}
	var found findings
	for _, node := range in.Config.Nodes {
		in.checkNode(node, bundle, &found)
	}
	found.report(l)
}

// CheckAround does what [Check] does for a configuration out of which settings with problems were left. Of a node that cannot
// be without one of them, its patches are read alone.
func CheckAround(in Input, l *check.List) {
	bundle, err := ThrowAwaySecrets()
	if err != nil {
		return // Check says so
	}
	var found findings
	for _, node := range in.Config.Nodes {
		if provider, err := in.tryBuild(node, bundle); err == nil {
			in.checkBuilt(node, provider, &found)
		} else {
			in.checkReading(node, &found)
		}
	}
	found.report(l)
}

// tryBuild calls build, which may do without nothing that was left out.
func (in Input) tryBuild(node spec.NamedNode, bundle *secrets.Bundle) (provider config.Provider, err error) {
	defer func() {
		if found := recover(); found != nil {
			err = fmt.Errorf("building the configuration of node %q: %v", node.Name, found)
		}
	}()

	return build(in, node.Name, bundle)
}

// CheckReading records the patches that no version of Talos could read.
func CheckReading(in Input, l *check.List) {
	var found findings
	for _, node := range in.Config.Nodes {
		in.checkReading(node, &found)
	}
	found.report(l)
}

// checkReading reads the patches of a node.
func (in Input) checkReading(node spec.NamedNode, found *findings) {
	for _, s := range in.sourcesOf(node.Name) {
		if _, err := in.readPatch(s); err != nil {
			found.addPatch(s, in.patchText(s), err, node.Name)
		}
	}
}

// checkNode builds a node's configuration and checks it.
func (in Input) checkNode(node spec.NamedNode, bundle *secrets.Bundle, found *findings) {
	name := node.Name
	provider, err := build(in, name, bundle)
	if err != nil {
		path := cause.Of(in.Config, node, err.Error())
		var at *check.PathError
		if errors.As(err, &at) {
			path, err = at.Path, at.Err
		}
		found.add(path, err.Error(), name)

		return
	}
	in.checkBuilt(node, provider, found)
}

// checkBuilt checks a node's configuration, and patches it step by step.
func (in Input) checkBuilt(node spec.NamedNode, provider config.Provider, found *findings) {
	name := node.Name
	before := refusals(in.Config, node, provider)
	for _, message := range before {
		found.add(cause.Of(in.Config, node, message), message, name)
	}
	for _, s := range in.sourcesOf(name) {
		text := in.patchText(s)
		next, err := in.checkPatch(s, provider)
		if err != nil {
			found.addPatch(s, text, err, name)

			continue
		}
		after := append(refusals(in.Config, node, next), overruled(provider, next)...)
		for _, message := range firstOf(after, before) {
			document, field := causeOf(text, message)
			path, message := s.blame(text, &patchError{document: document, field: field, message: message})
			found.add(path, message, name)
		}
		provider, before = next, after
	}
}

// firstOf returns the complaints that a patch brought. Another role brings more of them, which follow from it.
func firstOf(after, before []string) []string {
	var fresh []string
	for _, message := range after {
		if slices.Contains(before, message) {
			continue
		}
		if strings.Contains(message, "machine.type must stay") {
			return []string{message}
		}
		fresh = append(fresh, message)
	}

	return fresh
}

// checkPatch reads and applies one patch.
func (in Input) checkPatch(s source, provider config.Provider) (config.Provider, error) {
	p, err := in.readPatch(s)
	if err != nil {
		return nil, err
	}

	return p.apply(provider)
}

// ThrowAwaySecrets returns secrets for renders that never reach a node: checks and lists. They are quick to
// make: what only has to be there is shared, and the key of the
// service accounts is an elliptic one.
func ThrowAwaySecrets() (*secrets.Bundle, error) {
	now := time.Now()
	authority, err := secrets.NewTalosCA(now)
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	key, err := x509.NewECDSAKey()
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	pair := func() *x509.PEMEncodedCertificateAndKey {
		return &x509.PEMEncodedCertificateAndKey{Crt: authority.CrtPEM, Key: authority.KeyPEM}
	}

	return &secrets.Bundle{
		Clock: secrets.NewFixedClock(now),
		Cluster: &secrets.Cluster{
			ID: "throw-away", Secret: "YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE=",
		},
		Secrets: &secrets.Secrets{
			BootstrapToken:            "aaaaaa.aaaaaaaaaaaaaaaa",
			SecretboxEncryptionSecret: "YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE=",
		},
		TrustdInfo: &secrets.TrustdInfo{Token: "aaaaaa.aaaaaaaaaaaaaaaa"},
		Certs: &secrets.Certs{
			Etcd: pair(), K8s: pair(), K8sAggregator: pair(), OS: pair(),
			K8sServiceAccount: &x509.PEMEncodedKey{Key: key.KeyPEM},
		},
	}, nil
}

// finding holds a problem and the nodes that share it.
type finding struct {
	path, message string
	nodes         []string
}

// findings collects problems in the order they were found.
type findings []finding

// add records a node's problem; an empty path is the node itself.
func (f *findings) add(path, message, node string) {
	for i := range *f {
		if (*f)[i].path == path && (*f)[i].message == message {
			(*f)[i].nodes = append((*f)[i].nodes, node)

			return
		}
	}
	*f = append(*f, finding{path: path, message: message, nodes: []string{node}})
}

// addPatch records the problems in an error about a patch.
func (f *findings) addPatch(s source, text []byte, err error, node string) {
	for _, problem := range located(err) {
		path, message := s.blame(text, problem)
		f.add(path, message, node)
	}
}

// report records the problems, those that nodes share once.
func (f findings) report(l *check.List) {
	for _, p := range f {
		path, who := p.path, names(p.nodes)
		if path == "" {
			path = "nodes"
			if len(p.nodes) == 1 {
				path = check.Key("nodes", p.nodes[0])
			}
		}
		if strings.HasPrefix(path, "nodes.") || strings.HasPrefix(path, "nodes[") {
			who = "" // the path says it; and many nodes may have it from one place
		}
		l.Addf(path, "%s%s", p.message, who)
	}
}

// names returns " (node cp-1)", or the first few of many nodes.
func names(nodes []string) string {
	switch {
	case len(nodes) == 1:
		return fmt.Sprintf(" (node %s)", nodes[0])
	case len(nodes) <= shownNodes:
		return fmt.Sprintf(" (nodes %s)", strings.Join(nodes, ", "))
	default:
		return fmt.Sprintf(" (nodes %s and %d more)", strings.Join(nodes[:shownNodes], ", "), len(nodes)-shownNodes)
	}
}
