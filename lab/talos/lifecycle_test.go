// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos_test

import (
	"errors"
	"fmt"
	"testing"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

func TestUpgradeOneNode(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	vms := c.up(3)

	_, err := c.client(vms[1]).Upgrade(b.ctx, installer+schematicB+":v1.12.5", false, false) // what 1.12 has
	require.NoError(t, err)
	b.eventually("the node runs the new Talos", func() error {
		n, err := b.node(vms[1])
		if err == nil && (n.Version != "v1.12.5" || n.Schematic != schematicB || !n.Serving) {
			err = fmt.Errorf("%s %s, serving %v", n.Version, n.Schematic, n.Serving)
		}

		return err
	})
	b.awaitServing(vms...)
	assert.Equal(t, "Talos (v1.12.5)", b.spec("cp-2").OSImage)
	assert.Equal(t, 1, b.kube.started(), "a rolling reboot must not restart the API server")
	assertOneDownAtATime(t, b)
}

// assertOneDownAtATime proves from the trace that no two nodes were down together.
func assertOneDownAtATime(t *testing.T, b *bench) {
	t.Helper()
	down := b.trace.events("node.down")
	require.NotEmpty(t, down)
	for i, x := range down {
		for _, y := range down[i+1:] {
			apart := x.End.Before(y.Start) || y.End.Before(x.Start)
			assert.True(t, apart, "%s and %s were down together", x.Object, y.Object)
		}
	}
}

func TestUpgradeIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	vms := c.up(1)
	admin := c.client(vms[0])

	_, err := admin.Upgrade(b.ctx, installer+"deadbeef:v1.12.5", false, false) // what 1.12 has
	require.Error(t, err, "a schematic that nobody registered")
	assert.Contains(t, err.Error(), "error validating installer image")

	_, err = admin.Upgrade(b.ctx, installer+schematicA+":v1.8.0", false, false) // what 1.12 has
	require.NoError(t, err, "the installer finds out later")
	b.eventually("the upgrade fails and the node comes back", func() error {
		for _, e := range b.trace.events("talos.upgrade") {
			if e.Error != "" {
				assert.Contains(t, e.Error, "host version 1.12.4 is too new to downgrade to Talos 1.8.0")

				return nil
			}
		}

		return assert.AnError
	})
	b.awaitServing(vms[0])
	n, err := b.node(vms[0])
	require.NoError(t, err)
	assert.Equal(t, "v1.12.4", n.Version)
}

func TestRollback(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	vms := c.up(1)
	version := func(want string) {
		b.eventually("version "+want, func() error {
			n, err := b.node(vms[0])
			if err == nil && (n.Version != want || !n.Serving) {
				err = errors.New("version is " + n.Version)
			}

			return err
		})
	}

	_, err := c.client(vms[0]).Upgrade(b.ctx, installer+schematicA+":v1.12.5", true, false) // staged
	require.NoError(t, err)
	version("v1.12.5")
	require.NoError(t, c.client(vms[0]).Rollback(b.ctx))
	version("v1.12.4")
}

func TestLeavingAndRemovingMembers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	vms := c.up(3)

	require.NoError(t, c.client(vms[2]).EtcdLeaveCluster(b.ctx, &machineapi.EtcdLeaveClusterRequest{}))
	vms[2].cut()
	members := func() []*machineapi.EtcdMember {
		r, err := c.client(vms[0]).EtcdMemberList(b.ctx, &machineapi.EtcdMemberListRequest{})
		require.NoError(t, err)

		return r.GetMessages()[0].GetMembers()
	}
	require.Len(t, members(), 2)

	_, err := c.client(vms[0]).Upgrade(b.ctx, installer+schematicA+":v1.12.5", false, false) // what 1.12 has
	require.Error(t, err)
	assert.Contains(t, err.Error(), "etcd member count(2) is insufficient to maintain quorum if upgrade commences")

	vms[1].cut()
	_, err = c.client(vms[0]).EtcdMemberList(b.ctx, &machineapi.EtcdMemberListRequest{})
	require.Error(t, err, "one of two members has no quorum")
	assert.Contains(t, err.Error(), "etcdserver: no leader")

	vms[1].on()
	b.awaitServing(vms[0], vms[1])
	var second uint64
	for _, m := range members() {
		if m.GetHostname() == "cp-2" {
			second = m.GetId()
		}
	}
	require.NoError(t, c.client(vms[0]).EtcdRemoveMemberByID(b.ctx, &machineapi.EtcdRemoveMemberByIDRequest{MemberId: second}))
	require.Len(t, members(), 1)
	err = c.client(vms[0]).EtcdRemoveMemberByID(b.ctx, &machineapi.EtcdRemoveMemberByIDRequest{MemberId: second})
	assert.Equal(t, codes.NotFound, client.StatusCode(err))

	err = c.client(vms[0]).EtcdRemoveMemberByID(b.ctx, &machineapi.EtcdRemoveMemberByIDRequest{MemberId: members()[0].GetId()})
	assert.ErrorContains(t, err, "re-configuration failed due to not enough started members")
}

func TestReplacedControlPlaneJoinsAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	vms := c.up(3)

	vms[1].cut()
	old := vms[1].disk
	vms[1].disk = nil
	require.NoError(t, b.nodes.DiskDeleted(old))
	vms[1].on()
	b.apply(vms[1], c.config(machine.TypeControlPlane, "cp-2", nil))
	b.awaitServing(vms...)
	r, err := c.client(vms[0]).EtcdMemberList(b.ctx, &machineapi.EtcdMemberListRequest{})
	require.NoError(t, err)
	assert.Len(t, r.GetMessages()[0].GetMembers(), 3, "the earlier life of cp-2 is gone")

	vms[2].cut()
	vms[2].disk = nil
	vms[2].on()
	b.apply(vms[2], c.config(machine.TypeControlPlane, "another-name", nil))
	b.eventually("a new name at an old address is refused", func() error {
		for _, e := range b.trace.events("etcd.join") {
			if e.Error == "etcdserver: Peer URLs already exists" {
				return nil
			}
		}

		return assert.AnError
	})
}

func TestClusterSurvivesARestartOfTheSite(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	vms := c.up(3)

	for _, v := range vms {
		v.cut()
	}
	assert.Empty(t, b.nodes.Status().Nodes)
	for _, v := range vms {
		v.on()
	}
	b.awaitServing(vms...)
	err := c.client(vms[0]).Bootstrap(b.ctx, &machineapi.BootstrapRequest{})
	assert.ErrorContains(t, err, "etcd data directory is not empty")
}

func TestDataGoWithTheLastDisk(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	vms := c.up(1)
	running := b.kube.last()

	vms[0].cut()
	assert.False(t, running.wasDestroyed())
	require.NoError(t, b.nodes.DiskDeleted(vms[0].disk))
	assert.True(t, running.wasDestroyed())
	assert.Empty(t, b.nodes.Status().Clusters)
}

func TestResetReturnsToMaintenance(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	vms := c.up(3)

	_, err := c.client(vms[2]).ResetGenericWithResponse(b.ctx, &machineapi.ResetRequest{Graceful: true, Reboot: true})
	require.NoError(t, err)
	b.awaitStage(vms[2], "maintenance")
	r, err := c.client(vms[0]).EtcdMemberList(b.ctx, &machineapi.EtcdMemberListRequest{})
	require.NoError(t, err)
	assert.Len(t, r.GetMessages()[0].GetMembers(), 2)
}

func TestShutdownByACPI(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	v := b.vm(1, nil)
	v.on()
	b.awaitStage(v, "maintenance")
	close(v.acpi)
	<-v.done
	exit, _ := v.lastExit()
	assert.Equal(t, guest.ExitPowerOff, exit)
	assert.Empty(t, b.net.Owner(v.m.CloudInit.IPConfigs[0].IPv4.Addr()), "the address must be released")
}

// A VIP that somebody else holds, be it its former holder for a moment, keeps no node from serving.
func TestATakenVIPTakesNobodyDown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	free, err := b.net.Up(vmAddr("10.0.0.9"), "router")
	require.NoError(t, err)
	vms := b.cluster().up(1)
	b.eventually("the node says so", func() error {
		n, err := b.node(vms[0])
		if err == nil && n.Problem != "10.0.0.9: address already in use on this network, held by router" {
			err = errors.New("the problem is " + n.Problem)
		}

		return err
	})
	free()
	b.eventually("the node takes it", func() error {
		if b.net.Owner(vmAddr("10.0.0.9")) == "" {
			return errors.New("nobody has")
		}

		return nil
	})
	assert.Empty(t, b.trace.events("node.down"))
}

func TestVIPMovesWhenItsHolderFails(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	vms := c.up(3)
	vip := vmAddr("10.0.0.9")
	holder := ""
	b.eventually("somebody holds the VIP", func() error {
		if holder = b.net.Owner(vip); holder == "" {
			return assert.AnError
		}

		return nil
	})

	for _, v := range vms {
		if holder == fmt.Sprintf("VM %d (%s) on pve", v.m.VMID, v.m.Name) {
			v.cut()
		}
	}
	b.eventually("another holds the VIP", func() error {
		if now := b.net.Owner(vip); now == "" || now == holder {
			return errors.New("held by " + now)
		}
		conn, err := b.net.DialContext(b.ctx, "tcp", "10.0.0.9:6443")
		if err == nil {
			err = conn.Close()
		}

		return err
	})
}
