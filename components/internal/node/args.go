// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"cmp"
	"context"
	"os"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/components/internal/vmargs"
	"github.com/talos-proxmox/talos-proxmox/internal/proxmox"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Args say how the VM of a node is registered.
type Args struct {
	vmargs.Node

	// Parent is the component of the node.
	Parent pulumi.Resource
	// Name is the component's name, which the names of its resources begin with.
	Name string
	// Record remembers the VM.
	Record *Record
	// Lifecycle says which edits may replace the VM.
	Lifecycle spec.Lifecycle
	// API is how Proxmox VE is asked for what an interrupted run left behind.
	API API
	// Serves reports whether a living node of the cluster answers at an address; nil where nobody can tell.
	Serves func(ctx context.Context, address string) bool
	// Given are the caller's options for the VM, as far as they say what comes before it and which hooks
	// run around its steps.
	DependsOn []pulumi.Resource
	Hooks     *pulumi.ResourceHookBinding
}

// API holds the address and credentials of Proxmox VE for the calls that its provider does not make.
type API struct {
	Settings spec.Proxmox
	// Token and Password are credentials that become known during the run; nil where the settings have them.
	Token, Password *hook.Future[string]
}

// access returns endpoint and credentials as the provider finds them: in the settings, else in the
// environment.
func (a API) access(ctx context.Context) (proxmox.Access, error) {
	p := a.Settings
	found := proxmox.Access{
		Endpoint: cmp.Or(spec.Value(p.Endpoint), os.Getenv("PROXMOX_VE_ENDPOINT")), Insecure: spec.Value(p.Insecure),
		Token: os.Getenv("PROXMOX_VE_API_TOKEN"), Username: cmp.Or(spec.Value(p.Username), os.Getenv("PROXMOX_VE_USERNAME")),
		Password: os.Getenv("PROXMOX_VE_PASSWORD"),
	}
	var err error
	switch {
	case a.Token != nil:
		found.Token, err = a.Token.Get(ctx)
	case a.Password != nil:
		found.Token = ""
		found.Password, err = a.Password.Get(ctx)
	case p.APIToken != nil:
		found.Token = p.APIToken.Reveal()
	case p.Password != nil:
		found.Token, found.Password = "", p.Password.Reveal()
	}

	return found, err
}

// client returns a client of the Proxmox VE API; nil where endpoint or credentials are missing.
func (a API) client(ctx context.Context) (*proxmox.Client, error) {
	access, err := a.access(ctx)
	if err != nil || !access.Complete() {
		return nil, err
	}

	return proxmox.New(access)
}

// wantedVM tells a node's VM from others.
func wantedVM(n spec.NamedNode) proxmox.Wanted {
	wanted := proxmox.Wanted{ID: spec.Value(n.VMID), Name: n.Name}
	for _, d := range n.Devices() {
		wanted.MACs = append(wanted.MACs, *d.MAC)
	}

	return wanted
}
