// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSnapshotAndRecovery(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	vms := c.up(1)

	stream, err := c.client(vms[0]).EtcdSnapshot(b.ctx, &machineapi.EtcdSnapshotRequest{})
	require.NoError(t, err)
	snapshot, err := io.ReadAll(stream)
	require.NoError(t, err)
	assert.Equal(t, "snapshot of demo", string(snapshot))

	vms[0].cut()
	require.NoError(t, b.nodes.DiskDeleted(vms[0].disk))
	vms[0].disk = nil
	vms[0].on()
	b.apply(vms[0], c.config(machine.TypeControlPlane, "cp-1", nil))
	admin := c.client(vms[0])
	b.eventually("a recovery without a snapshot is refused", func() error {
		err := admin.Bootstrap(b.ctx, &machineapi.BootstrapRequest{RecoverEtcd: true})
		if err == nil {
			return errors.New("it was accepted")
		}
		if !strings.Contains(err.Error(), "no such file or directory") {
			return err
		}

		return nil
	})

	_, err = admin.EtcdRecover(b.ctx, bytes.NewReader(snapshot))
	require.NoError(t, err)
	require.NoError(t, admin.Bootstrap(b.ctx, &machineapi.BootstrapRequest{RecoverEtcd: true}))
	b.awaitServing(vms[0])
	assert.Equal(t, snapshot, b.kube.last().config.Restore)
}
