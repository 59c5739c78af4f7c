// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talosapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Reboots asks the node by a dry run, in the mode in which configurations are applied. The answer's
// details hold the whole difference, secrets included: nothing of it goes further.
func (c *Client) Reboots(ctx context.Context, address string, configuration []byte) (bool, error) {
	node, err := c.node(ctx, address)
	if err != nil {
		return false, err
	}
	resp, err := node.ApplyConfiguration(ctx, &machineapi.ApplyConfigurationRequest{
		Data: configuration, Mode: machineapi.ApplyConfigurationRequest_AUTO, DryRun: true,
	})
	if err != nil {
		return false, fmt.Errorf("asking whether the configuration needs a reboot: %w", err)
	}
	for _, m := range resp.GetMessages() {
		//nolint:staticcheck // nodes still answer with it
		return m.GetMode() == machineapi.ApplyConfigurationRequest_REBOOT, nil
	}

	return false, errors.New("asking whether the configuration needs a reboot: the node sent an empty answer")
}

// Try applies a configuration in Talos's try mode: the node takes it back by itself.
func (c *Client) Try(ctx context.Context, address string, configuration []byte, back time.Duration) error {
	node, err := c.node(ctx, address)
	if err != nil {
		return err
	}
	if _, err := node.ApplyConfiguration(ctx, &machineapi.ApplyConfigurationRequest{
		Data: configuration, Mode: machineapi.ApplyConfigurationRequest_TRY, TryModeTimeout: durationpb.New(back),
	}); err != nil {
		return fmt.Errorf("trying the configuration: %w", err)
	}

	return nil
}

// Unconfigured reports whether the machine waits for its first configuration.
func (c *Client) Unconfigured(ctx context.Context, address string) bool {
	return InMaintenance(ctx, address) == nil
}

// Configuration returns the active machine configuration of a node, secrets included.
func (c *Client) Configuration(ctx context.Context, address string) ([]byte, error) {
	active, err := c.machineConfig(ctx, address)
	if err != nil {
		return nil, err
	}
	data, err := active.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	if err != nil {
		return nil, fmt.Errorf("reading the machine configuration: %w", err)
	}

	return data, nil
}
