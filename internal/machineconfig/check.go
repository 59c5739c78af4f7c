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
		in.checkNode(node.Name, bundle, &found)
	}
	found.report(l)
}

// CheckPatches checks patches alone, at the nodes that show what is wrong with each: the first of each role, and those with
// patches of their own. It is for configurations with other problems, of which it says nothing.
func CheckPatches(in Input, l *check.List) {
	bundle, err := ThrowAwaySecrets()
	if err != nil {
		return // Check says so
	}
	var found findings
	seen := map[bool]bool{}
	for _, node := range in.Config.Nodes {
		if len(in.sourcesOf(node.Name)) == 0 || seen[node.IsControlPlane()] && len(node.Patches) == 0 {
			continue
		}
		seen[node.IsControlPlane()] = true
		in.checkNode(node.Name, bundle, &found)
	}
	for _, p := range found {
		if strings.Contains(p.path, "patches.") || strings.Contains(p.path, "patches[") {
			l.Addf(p.path, "%s", p.message)
		}
	}
}

// checkNode builds the configuration, then patches it step by step.
func (in Input) checkNode(name string, bundle *secrets.Bundle, found *findings) {
	provider, err := build(in, name, bundle)
	if err != nil {
		path := ""
		var field *fieldError
		if errors.As(err, &field) {
			path, err = field.path, field.err
		}
		found.add(path, err.Error(), name)

		return
	}
	node, _ := in.Config.Node(name)
	before := refusals(in.Config, node, provider)
	for _, message := range before {
		found.add("", message, name)
	}
	for _, s := range in.sourcesOf(name) {
		text := in.patchText(s)
		next, err := in.checkPatch(s, provider)
		if err != nil {
			for _, problem := range located(err) {
				path, message := s.blame(text, problem)
				found.add(path, message, name)
			}

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

// report records the problems, those that nodes share once.
func (f findings) report(l *check.List) {
	for _, p := range f {
		path, who := p.path, names(p.nodes)
		if path == "" {
			path = "nodes"
			if len(p.nodes) == 1 {
				path, who = check.Join("nodes", p.nodes[0]), ""
			}
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

// fieldError reports a problem with a setting that is not a node's own.
type fieldError struct {
	path string
	err  error
}

// Error returns "path: problem".
func (e *fieldError) Error() string { return e.path + ": " + e.err.Error() }

// Unwrap returns the problem itself.
func (e *fieldError) Unwrap() error { return e.err }

// at says which setting a problem is about.
func at(path string, err error) error { return &fieldError{path: path, err: err} }
