// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"

	"github.com/talos-proxmox/talos-proxmox/components/internal/stash"
	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// applyConfigurations applies every node's configuration: control planes one after the other, then the first worker,
// then all others, so that an edit that does harm stops at one node. While the cluster is made, each gets it as soon as
// its machine is there, and so does a machine that is made in a cluster that lives. It returns the fingerprint of each
// configuration too, which tells whether a node has to be looked at again.
func applyConfigurations(b *Build, manifests pulumi.Output) (map[string]*machine.ConfigurationApply, pulumi.StringMap, error) {
	applies := make(map[string]*machine.ConfigurationApply, len(b.Config.Nodes))
	fingerprints := make(pulumi.StringMap, len(b.Config.Nodes))
	before := predecessors(b.Config)
	known := knownMachines(b)
	for _, n := range planesFirst(b.Config) {
		config := render(b, manifests, n.Name)
		fingerprints[n.Name] = fingerprintOf(config)

		var earlier []pulumi.Resource
		if other := before[n.Name]; other != "" {
			earlier = append(earlier, applies[other])
		}
		apply, err := applyConfiguration(b, n, config, known.after(b, n, earlier))
		if err != nil {
			return nil, nil, fmt.Errorf("registering the configuration of node %q: %w", n.Name, err)
		}
		applies[n.Name] = apply
	}

	return applies, fingerprints, nil
}

// planesFirst returns all nodes, control planes before workers.
func planesFirst(cfg spec.Config) []spec.NamedNode {
	nodes := slices.Clone(cfg.Nodes)
	slices.SortStableFunc(nodes, func(a, b spec.NamedNode) int {
		switch {
		case a.IsControlPlane() == b.IsControlPlane():
			return 0
		case a.IsControlPlane():
			return -1
		default:
			return 1
		}
	})

	return nodes
}

// predecessors returns, by node, the node whose configuration is applied before.
func predecessors(cfg spec.Config) map[string]string {
	before := map[string]string{}
	last, firstWorker := "", ""
	for _, n := range planesFirst(cfg) {
		switch {
		case n.IsControlPlane():
			before[n.Name], last = last, n.Name
		case firstWorker == "":
			before[n.Name], firstWorker = last, n.Name
		default:
			before[n.Name] = firstWorker
		}
	}

	return before
}

// render returns a node's configuration, a secret.
func render(b *Build, manifests pulumi.Output, node string) pulumi.StringOutput {
	in := b.Checked.Machines
	directory := fileAtUp(b.Session, in.Config.Output.MachineConfigDirectory)
	rendered := pulumi.All(b.Secrets.Bundle, manifests, contract(b), b.permitted).ApplyT(func(v []any) (string, error) {
		bundle, ok := v[0].(*secrets.Bundle)
		list, listed := v[1].([]machineconfig.Manifest)
		contract, pinned := v[2].(string)
		if !ok || !listed || !pinned {
			return "", fmt.Errorf("rendering the configuration of node %q: the cluster's secrets are missing", node)
		}
		own := in
		own.Manifests = list
		own.Config.Talos.Contract = &contract
		config, err := machineconfig.Render(own, node, bundle)
		if err != nil {
			return "", err
		}
		b.configs.Store(node, config)
		if directory != "" {
			err = writePrivate(filepath.Join(directory, node+".yaml"), config)
		}

		return config, err
	}).(pulumi.StringOutput)

	return secretString(rendered)
}

// fingerprintOf returns a fingerprint of a configuration, which may be shown: the configuration holds keys,
// so that nobody can guess it.
func fingerprintOf(config pulumi.StringOutput) pulumi.StringOutput {
	sum := config.ApplyT(func(text string) (string, error) { return stash.Fingerprint(text) })

	return pulumi.Unsecret(sum).(pulumi.StringOutput)
}

// applyConfiguration applies one node's configuration when its machine is there, and again when the machine
// was replaced.
func applyConfiguration(
	b *Build, n spec.NamedNode, config pulumi.StringOutput, after pulumi.ResourceOption,
) (*machine.ConfigurationApply, error) {
	hooks, err := applyHooks(b.Session, memberOf(n))
	if err != nil {
		return nil, err
	}
	opts := []pulumi.ResourceOption{
		pulumi.Parent(b.Parent), after, pulumi.ResourceHooks(hooks), providerTimeout(b.Config),
		pulumi.AdditionalSecretOutputs([]string{"clientConfiguration"}),
		pulumi.HideDiffs([]string{"machineConfiguration"}), // the output; the input says that it changes
	}
	if vm := b.Machines[n.Name]; vm != nil {
		opts = append(opts, pulumi.DependsOn([]pulumi.Resource{vm}), pulumi.ReplaceWith([]pulumi.Resource{vm}))
	}
	if id := b.MachineIDs[n.Name]; id != nil {
		// A machine that was lost is created, not replaced.
		opts = append(opts, pulumi.ReplacementTrigger(id))
	}

	return machine.NewConfigurationApply(b.Ctx, b.Name+"-"+n.Name, &machine.ConfigurationApplyArgs{
		ClientConfiguration:       clientConfiguration(b.Secrets),
		MachineConfigurationInput: config,
		Node:                      pulumi.String(n.Address().String()),
		ApplyMode:                 pulumi.String("auto"),
	}, opts...)
}
