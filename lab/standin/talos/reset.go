// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"strings"
	"time"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// resetPoll is the pause between looks at a node that is being reset.
const resetPoll = time.Second

// resetOnDestroy wipes the node where onDestroy says so. What it says is read from the state.
func resetOnDestroy(ctx context.Context, op *bridge.Op) error {
	if !op.State.Bool("onDestroy.reset") {
		return nil
	}

	t, err := targetOf(op.State)
	if err != nil {
		return err
	}

	timeout, err := timeoutOf(op.State, "timeouts.delete")
	if err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	graceful, reboot := true, op.State.Bool("onDestroy.reboot")
	if op.State.Has("onDestroy.graceful") {
		graceful = op.State.Bool("onDestroy.graceful")
	}

	err = t.do(ctx, func(ctx context.Context, c *client.Client) error {
		boot, err := bootID(ctx, c)
		if err != nil {
			return err
		}

		if _, err := c.ResetGenericWithResponse(ctx, &machineapi.ResetRequest{
			Graceful: graceful, Reboot: reboot,
			SystemPartitionsToWipe: []*machineapi.ResetPartitionSpec{
				{Label: "STATE", Wipe: true}, {Label: "EPHEMERAL", Wipe: true},
			},
		}); err != nil {
			return err
		}

		return t.awaitReset(ctx, c, boot, reboot)
	})
	if err != nil {
		return fmt.Errorf("Error resetting machine: %w", err) // the plugin's text
	}

	return nil
}

// awaitReset returns when the node has gone down, or has come back from its reboot.
func (t target) awaitReset(ctx context.Context, c *client.Client, boot string, reboot bool) error {
	tick := time.NewTicker(resetPoll)
	defer tick.Stop()

	for {
		now, err := bootID(ctx, c)

		switch {
		case !reboot && err != nil, reboot && err == nil && now != boot:
			return nil
		case reboot && t.inMaintenance(ctx):
			return nil
		}

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func (t target) inMaintenance(ctx context.Context) bool {
	c, err := client.New(ctx,
		client.WithTLSConfig(&tls.Config{InsecureSkipVerify: true}), // as the genuine plugin
		client.WithEndpoints(t.endpoint))
	if err != nil {
		return false
	}
	defer c.Close() //nolint:errcheck // nothing is lost

	_, err = c.Disks(client.WithNode(ctx, t.node))

	return err == nil
}

func bootID(ctx context.Context, c *client.Client) (string, error) {
	r, err := c.Read(ctx, "/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	defer r.Close() //nolint:errcheck // it is only read

	text, err := io.ReadAll(r)

	return strings.TrimSpace(string(text)), err
}
