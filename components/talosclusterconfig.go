// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"

	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// applyConfigurations applies every node's configuration, all at the same time, after what they depend
// on: their forms, and the version of Kubernetes that they name. It returns the digest of each configuration too, which tells
// whether a node has to be looked at again.
func (c *TalosCluster) applyConfigurations(
	ctx *pulumi.Context, name string, in machineconfig.Input, manifests pulumi.Output,
	machines map[string]pulumi.Resource, after []pulumi.Resource,
) (map[string]*machine.ConfigurationApply, pulumi.StringMap, error) {
	applies := make(map[string]*machine.ConfigurationApply, len(in.Config.Nodes))
	digests := make(pulumi.StringMap, len(in.Config.Nodes))
	for _, n := range in.Config.Nodes {
		config := c.render(ctx, in, manifests, n.Name)
		digests[n.Name] = digestOf(config)

		apply, err := c.applyConfiguration(ctx, name, n, config, machines[n.Name], after)
		if err != nil {
			return nil, nil, fmt.Errorf("registering the configuration of node %q: %w", n.Name, err)
		}
		applies[n.Name] = apply
	}

	return applies, digests, nil
}

// render is a node's configuration, a secret.
func (c *TalosCluster) render(
	ctx *pulumi.Context, in machineconfig.Input, manifests pulumi.Output, node string,
) pulumi.StringOutput {
	write := !ctx.DryRun() && spec.Or(in.Config.Output.MachineConfigDirectory, "") != ""
	rendered := pulumi.All(c.secrets.bundle, manifests, c.contract()).ApplyT(func(v []any) (string, error) {
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
			return "", err //nolint:wrapcheck // names the node
		}
		c.configs.Store(node, config)
		if write {
			err = writePrivate(filepath.Join(*in.Config.Output.MachineConfigDirectory, node+".yaml"), config)
		}

		return config, err
	})

	return pulumi.ToSecret(rendered).(pulumi.StringOutput) //nolint:forcetypeassert // ToSecret keeps the type
}

// digestOf is a fingerprint of a configuration, which may be shown: the configuration holds keys, so
// nobody can guess it.
func digestOf(config pulumi.StringOutput) pulumi.StringOutput {
	digest := config.ApplyT(func(text string) string {
		sum := sha256.Sum256([]byte(text))

		return hex.EncodeToString(sum[:8])
	})

	return pulumi.Unsecret(digest).(pulumi.StringOutput) //nolint:forcetypeassert // Unsecret keeps the type
}

// applyConfiguration applies one node's configuration when its machine is there, and anew when the
// machine was replaced.
func (c *TalosCluster) applyConfiguration(
	ctx *pulumi.Context, name string, n spec.NamedNode, config pulumi.StringOutput, vm pulumi.Resource, after []pulumi.Resource,
) (*machine.ConfigurationApply, error) {
	guard, err := c.guardApply(ctx, name, memberOf(n))
	if err != nil {
		return nil, err
	}
	after = slices.Clone(after)
	if vm != nil {
		after = append(after, vm)
	}
	opts := []pulumi.ResourceOption{
		pulumi.Parent(c), pulumi.DependsOn(after), pulumi.ResourceHooks(guard),
		pulumi.AdditionalSecretOutputs([]string{"clientConfiguration"}),
	}
	if vm != nil {
		opts = append(opts, pulumi.ReplaceWith([]pulumi.Resource{vm}))
	}
	opts = append(opts, providerTimeout(c.config))

	//nolint:wrapcheck // the caller names the node
	return machine.NewConfigurationApply(ctx, name+"-"+n.Name, &machine.ConfigurationApplyArgs{
		ClientConfiguration: machine.ClientConfigurationArgs{
			CaCertificate: c.secrets.ca, ClientCertificate: c.secrets.certificate, ClientKey: c.secrets.key,
		},
		MachineConfigurationInput: config,
		Node:                      pulumi.String(n.Address().String()),
		ApplyMode:                 pulumi.String("auto"),
	}, opts...)
}
