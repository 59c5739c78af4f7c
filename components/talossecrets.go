// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/node"
	"github.com/talos-proxmox/talos-proxmox/components/internal/talos"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// TalosSecretsType is the token of [TalosSecrets]. Changing it loses every cluster's secrets.
const TalosSecretsType = "talos-proxmox:components:TalosSecrets"

// TalosSecretsArgs describe the secrets of a cluster.
type TalosSecretsArgs struct {
	// Config is the whole cluster. Of it count the contract at creation, an adopted bundle, protection, the
	// nodes' addresses and the life cycle.
	Config spec.Config
}

// TalosSecrets holds a cluster's certificates and keys: generated once, or those of an existing cluster. They
// come before the machines, so that what happens to a machine can look at the cluster first.
type TalosSecrets struct {
	pulumi.ResourceState

	// Talosconfig of an administrator, a secret; known as soon as the secrets are.
	Talosconfig pulumi.StringOutput `pulumi:"talosconfig"`

	session *talos.Session
	secrets *talos.Secrets
}

// NewTalosSecrets registers the secrets of a cluster. The name must be unique among the program's clusters.
func NewTalosSecrets(
	ctx *pulumi.Context, name string, args *TalosSecretsArgs, opts ...pulumi.ResourceOption,
) (*TalosSecrets, error) {
	if args == nil {
		return nil, errNoArgs("secrets of cluster", name)
	}
	given, err := pulumi.NewResourceOptions(opts...)
	if err != nil {
		return nil, fmt.Errorf("secrets of cluster %q: %w", name, err)
	}
	s := &TalosSecrets{session: talos.NewSession(ctx, name, args.Config.WithDefaults())}
	if err := ctx.RegisterComponentResource(TalosSecretsType, name, s, opts...); err != nil {
		return nil, fmt.Errorf("registering the secrets of cluster %q: %w", name, err)
	}
	if s.secrets, err = talos.RegisterSecrets(s.session, s, given.DependsOn); err != nil {
		return nil, err
	}
	s.Talosconfig = s.secrets.Talosconfig

	return s, ctx.RegisterResourceOutputs(s, pulumi.Map{"talosconfig": s.Talosconfig})
}

// VMHooks returns hooks for the VM of a node: an edit that reboots it waits for its turn, since the provider
// edits VMs in parallel, and goes ahead only while the cluster can spare the node; the next one gets its turn
// when the node is back. VMs with these hooks must depend on the secrets. Call it once for each node.
func (s *TalosSecrets) VMHooks(node string) (*pulumi.ResourceHookBinding, error) {
	return talos.VMHooks(s.session, node)
}

// rememberMachines registers which VMs the nodes have.
func (s *TalosSecrets) rememberMachines() (*node.Record, error) {
	return talos.RememberMachines(s.session, s, s.secrets.Resource)
}
