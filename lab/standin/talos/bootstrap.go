// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"fmt"

	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

func bootstrap() *bridge.Resource {
	return &bridge.Resource{
		Args: &machine.BootstrapArgs{}, State: machine.Bootstrap{},
		Framework: true,
		Secrets:   []string{"clientConfiguration.clientKey"},
		Computed:  []string{"endpoint"},
		Validate:  validTimeouts,
		Recompute: func([]bridge.Change) []string { return []string{"endpoint"} },
		Plan:      planEndpoint,
		Create:    createBootstrap,
		// Another node or endpoint is only written down: a cluster is bootstrapped once.
		Update: func(_ context.Context, op *bridge.Op) (bridge.Tree, error) {
			return bridge.Tree{"endpoint": endpointOf(op.In)}, nil
		},
		// An import takes any id: it says that the cluster has been bootstrapped already.
		Read: func(_ context.Context, op *bridge.Op) (bridge.Tree, error) {
			if op.State == nil {
				op.ID = "machine_bootstrap"

				return bridge.Tree{}, nil
			}
			return op.State, nil
		},
	}
}

func planEndpoint(_ context.Context, op *bridge.Op) (bridge.Tree, error) {
	if op.Unknown["node"] || op.Unknown["endpoint"] {
		return nil, nil // nothing is known
	}

	return bridge.Tree{"endpoint": endpointOf(op.In)}, nil
}

func createBootstrap(ctx context.Context, op *bridge.Op) (string, bridge.Tree, error) {
	t, err := targetOf(op.In)
	if err != nil {
		return "", nil, err
	}

	timeout, err := timeoutOf(op.In, "timeouts.create")
	if err != nil {
		return "", nil, err
	}

	err = retry(ctx, timeout, func(ctx context.Context) error {
		return t.do(ctx, func(ctx context.Context, c *client.Client) error {
			return c.Bootstrap(ctx, &machineapi.BootstrapRequest{})
		})
	})
	if err != nil {
		return "", nil, fmt.Errorf("Error bootstrapping node: %w", err) // the plugin's text
	}

	if err := turnaround(op.In); err != nil {
		return "", nil, err
	}

	return "machine_bootstrap", bridge.Tree{"endpoint": t.endpoint}, nil
}
