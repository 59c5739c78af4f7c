// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package machineconfig renders the Talos machine configuration of every node from plain settings,
// and checks it with Talos's own validation before a node sees it. It is pure: the same input gives
// the same bytes, nothing is dialled, and files are read through the input only.
package machineconfig

import (
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/config"
	document "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Render returns the complete machine configuration of a node as YAML, byte for byte the same for
// the same input: what the settings say, in the forms of the pinned contract, and the user's patches
// over it. The result holds secrets. It fails where [Check] reports a problem that leaves no
// configuration to speak of, such as an unknown node or a patch that cannot be read.
func Render(in Input, node string, b *secrets.Bundle) (string, error) {
	provider, err := build(in, node, b)
	if err != nil {
		return "", fmt.Errorf("rendering the configuration of node %q: %w", node, err)
	}
	patches, err := in.patchesOf(node)
	if err != nil {
		return "", fmt.Errorf("rendering the configuration of node %q: %w", node, err)
	}
	for _, p := range patches {
		if provider, err = p.apply(provider); err != nil {
			return "", fmt.Errorf("rendering the configuration of node %q: %s: %w", node, p.path, err)
		}
	}
	text, err := provider.EncodeString(encoder.WithComments(encoder.CommentsDisabled))
	if err != nil {
		return "", fmt.Errorf("encoding the configuration of node %q: %w", node, err)
	}
	if text, err = settleQuotes(text); err != nil {
		return "", fmt.Errorf("encoding the configuration of node %q: %w", node, err)
	}

	return text, nil
}

// builder collects the documents of one node.
type builder struct {
	in       Input
	cfg      spec.Config
	node     spec.NamedNode
	contract versions.Contract
	bundle   *secrets.Bundle

	machine *v1alpha1.MachineConfig
	cluster *v1alpha1.ClusterConfig
	// documents stand beside the machine configuration, in the order they are added.
	documents []document.Document
}

// build returns the node's configuration before the user's patches.
func build(in Input, name string, b *secrets.Bundle) (config.Provider, error) {
	node, ok := in.Config.Node(name)
	if !ok {
		return nil, fmt.Errorf("there is no node of that name")
	}
	contract, err := in.contract()
	if err != nil {
		return nil, err
	}
	if err := contract.Supported(); err != nil {
		return nil, err
	}
	r := &builder{in: in, cfg: in.Config, node: node, contract: contract, bundle: b}
	base, err := r.base()
	if err != nil {
		return nil, err
	}
	r.machine, r.cluster = base.MachineConfig, base.ClusterConfig
	for _, add := range []func() error{
		r.addHostname, r.addNetwork, r.addKubelet, r.addNodeMeta, r.addSystem, r.addGPU, r.addVolumes,
		r.addDisks, r.addRegistries, r.addTrust, r.addLogging, r.addKubernetes, r.moveToDocuments,
	} {
		if err := add(); err != nil {
			return nil, err
		}
	}
	provider, err := container.New(append([]document.Document{base}, r.documents...)...)
	if err != nil {
		return nil, fmt.Errorf("joining the documents: %w", err)
	}

	return provider, nil
}

// add appends documents.
func (r *builder) add(documents ...document.Document) {
	r.documents = append(r.documents, documents...)
}
