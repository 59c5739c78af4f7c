// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talosapi

import (
	"context"
	"crypto/tls"
	"fmt"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
)

// InMaintenance returns nil when the machine at that address waits for its first configuration. Only then does
// it answer a caller without a certificate; a configured one closes the connection.
func InMaintenance(ctx context.Context, address string) error {
	node, err := openUnconfigured(ctx, address)
	if err != nil {
		return err
	}
	defer node.Close() //nolint:errcheck // nothing was sent

	status, err := safe.StateGet[*runtime.MachineStatus](ctx, node.COSI, runtime.NewMachineStatus().Metadata())
	if err != nil {
		return fmt.Errorf("the machine at %s does not say that it is unconfigured: %w", address, err)
	}
	if stage := status.TypedSpec().Stage; stage != runtime.MachineStageMaintenance {
		return fmt.Errorf("the machine at %s is in stage %q, not waiting for a configuration", address, stage)
	}

	return nil
}

// openUnconfigured opens the Talos API of a machine that waits for its first configuration: it has no
// certificate that anybody could know, and asks for none.
func openUnconfigured(ctx context.Context, address string) (*client.Client, error) {
	node, err := client.New(ctx,
		client.WithTLSConfig(&tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}),
		client.WithEndpoints(address), client.WithDefaultGRPCDialOptions())
	if err != nil {
		return nil, fmt.Errorf("opening the Talos API of %s: %w", address, err)
	}

	return node, nil
}

// Configure sends a machine in maintenance mode its first configuration, as the provider does: nobody can know
// such a machine's certificate.
func Configure(ctx context.Context, address, config string) error {
	node, err := openUnconfigured(ctx, address)
	if err != nil {
		return err
	}
	defer node.Close() //nolint:errcheck // the answer has come

	_, err = node.ApplyConfiguration(ctx, &machine.ApplyConfigurationRequest{
		Data: []byte(config), Mode: machine.ApplyConfigurationRequest_AUTO,
	})
	if err != nil {
		return fmt.Errorf("configuring the machine at %s: %w", address, err)
	}

	return nil
}
