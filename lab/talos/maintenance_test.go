// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos_test

import (
	"net/netip"
	"testing"

	"github.com/cosi-project/runtime/pkg/safe"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

func TestMaintenanceModeAnswers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	v := b.vm(1, nil)
	v.on()
	b.awaitStage(v, "maintenance")
	c := b.insecure(v)

	disks, err := c.Disks(b.ctx)
	require.NoError(t, err)
	require.Len(t, disks.GetMessages()[0].GetDisks(), 2)
	assert.Equal(t, "/dev/loop0", disks.GetMessages()[0].GetDisks()[0].GetDeviceName())
	assert.Equal(t, "/dev/sda", disks.GetMessages()[0].GetDisks()[1].GetDeviceName())

	list, err := safe.StateListAll[*block.Disk](b.ctx, c.COSI)
	require.NoError(t, err, "talosctl get disks --insecure")
	require.Equal(t, 2, list.Len())
	assert.Equal(t, uint64(20<<30), list.Get(1).TypedSpec().Size)

	_, err = c.MachineClient.Version(b.ctx, &emptypb.Empty{})
	assert.Equal(t, codes.Unimplemented, client.StatusCode(err))
	assert.ErrorContains(t, err, "API is not implemented in maintenance mode")

	err = c.Bootstrap(b.ctx, &machineapi.BootstrapRequest{})
	assert.Equal(t, codes.Unimplemented, client.StatusCode(err))
}

func TestMaintenanceModeOf113RefusesByRole(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	v := b.vm(1, func(m *guest.Machine) { m.CD = iso("v1.13.0") })
	v.on()
	b.awaitStage(v, "maintenance")
	c := b.insecure(v)

	_, err := c.Disks(b.ctx)
	require.NoError(t, err)
	err = c.Bootstrap(b.ctx, &machineapi.BootstrapRequest{})
	assert.Equal(t, codes.PermissionDenied, client.StatusCode(err))
	_, err = c.Disks(client.WithNode(b.ctx, "10.0.0.77"))
	require.NoError(t, err, "apid's routing is off: whoever is asked answers")
	version, err := c.Version(b.ctx)
	require.NoError(t, err, "everybody reads")
	assert.Equal(t, "v1.13.0", version.GetMessages()[0].GetVersion().GetTag())
	upgrade, err := c.LifecycleClient.Upgrade(b.ctx, &machineapi.LifecycleServiceUpgradeRequest{})
	require.NoError(t, err)
	_, err = upgrade.Recv()
	assert.Equal(t, codes.PermissionDenied, client.StatusCode(err))
}

func TestMaintenanceModeOf113TakesTheFirstConfiguration(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	v := b.vm(1, func(m *guest.Machine) { m.CD = iso("v1.13.0") })
	v.on()
	b.awaitStage(v, "maintenance")

	_, err := b.insecure(v).ApplyConfiguration(b.ctx, &machineapi.ApplyConfigurationRequest{
		Data: []byte("apiVersion: v1alpha1\nkind: Nonsense\n"),
	})
	assert.Equal(t, codes.InvalidArgument, client.StatusCode(err), "what cannot be read is said at once")
	assert.NotContains(t, err.Error(), "failed to parse config")
	reply, err := b.insecure(v).ApplyConfiguration(b.ctx, &machineapi.ApplyConfigurationRequest{
		Data: b.cluster().config(machine.TypeControlPlane, "cp-1", nil), DryRun: true,
	})
	require.NoError(t, err)
	assert.Equal(t, machineapi.ApplyConfigurationRequest_NO_REBOOT, reply.GetMessages()[0].GetMode())
	assert.Contains(t, reply.GetMessages()[0].GetModeDetails(), "Applied configuration without a reboot (skipped in dry-run).")
}

func TestMaintenanceModeRefusesConfigurations(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	v := b.vm(1, nil)
	v.on()
	b.awaitStage(v, "maintenance")

	for name, tc := range map[string]struct {
		data []byte
		mode machineapi.ApplyConfigurationRequest_Mode
		code codes.Code
		text string
	}{
		"a document of an unknown kind": {
			data: []byte("apiVersion: v1alpha1\nkind: Nonsense\n"), code: codes.Unknown,
			text: `failed to parse config: error decoding document v1alpha1/Nonsense/ (line 1): "Nonsense" "v1alpha1": not registered`,
		},
		"an endpoint that is missing": {
			data: c.config(machine.TypeControlPlane, "x", func(cfg *v1alpha1.Config) {
				cfg.ClusterConfig.ControlPlane.Endpoint = nil
			}),
			code: codes.InvalidArgument, text: "configuration validation failed: ",
		},
		"a mode that maintenance does not have": {
			data: c.config(machine.TypeControlPlane, "x", nil), mode: machineapi.ApplyConfigurationRequest_STAGED,
			code: codes.Unimplemented, text: "apply configuration --mode='staged' is not supported in maintenance mode",
		},
	} {
		_, err := b.insecure(v).ApplyConfiguration(b.ctx, &machineapi.ApplyConfigurationRequest{Data: tc.data, Mode: tc.mode})
		require.Error(t, err, name)
		assert.Equal(t, tc.code, client.StatusCode(err), name)
		assert.ErrorContains(t, err, tc.text, name)
	}

	n, err := b.node(v)
	require.NoError(t, err)
	assert.Equal(t, "maintenance", n.Stage)
}

func TestOlderTalosDoesNotKnowNewerDocuments(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	v := b.vm(1, func(m *guest.Machine) { m.CD = iso("v1.11.5") })
	v.on()
	b.awaitStage(v, "maintenance")

	_, err := b.insecure(v).ApplyConfiguration(b.ctx, &machineapi.ApplyConfigurationRequest{
		Data: b.cluster().config(machine.TypeControlPlane, "cp-1", nil),
	})
	assert.Equal(t, codes.Unknown, client.StatusCode(err))
	assert.ErrorContains(t, err, `"HostnameConfig" "v1alpha1": not registered`)
}

func TestWrongInstallDiskKeepsTheNodeOut(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	v := b.vm(1, nil)
	v.on()
	b.apply(v, b.cluster().config(machine.TypeControlPlane, "cp-1", func(cfg *v1alpha1.Config) {
		cfg.MachineConfig.MachineInstall.InstallDisk = "/dev/vda"
	}))
	b.eventually("the installation fails", func() error {
		for _, e := range b.trace.events("talos.install") {
			if e.Error != "" {
				assert.Equal(t, "lstat /dev/vda: no such file or directory", e.Error)

				return nil
			}
		}

		return assert.AnError
	})
	b.awaitStage(v, "maintenance")
}

func TestMachinesThatCannotBoot(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*guest.Machine)
		text   string
	}{
		"the CPU is too old":   {func(m *guest.Machine) { m.CPUType = "qemu64" }, "v2 microarchitecture support"},
		"memory is too small":  {func(m *guest.Machine) { m.MemoryMiB = 256 }, "System is deadlocked on memory"},
		"there is no medium":   {func(m *guest.Machine) { m.CD = nil }, "no bootable device"},
		"the disk goes second": {func(m *guest.Machine) { m.Disks[0].Image = iso("v1.12.4") }, "talos.halt_if_installed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			v := b.vm(1, tc.change)
			m := v.m
			m.BootedFromCD = true
			exit := make(chan guest.Exit, 1)
			b.wg.Go(func() { exit <- b.nodes.Guest(&m).Run(b.ctx, &m) })
			assert.Equal(t, guest.ExitHalt, <-exit)
			halts := b.trace.events("talos.halt")
			require.Len(t, halts, 1)
			assert.Contains(t, halts[0].Error, tc.text)
		})
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change  func(*guest.Machine)
		problem string
	}{
		"a metal image ignores cloud-init": {
			func(m *guest.Machine) { m.CD.Platform = "metal" }, "no address: the image reads none and there is no DHCP",
		},
		"an address that is taken": {
			func(m *guest.Machine) {
				m.CloudInit.IPConfigs[0].IPv4 = netip.MustParsePrefix("10.0.0.100/24")
			}, "10.0.0.100: address already in use on this network, held by router",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			_, err := b.net.Up(netip.MustParseAddr("10.0.0.100"), "router")
			require.NoError(t, err)
			v := b.vm(1, tc.change)
			v.on()
			b.awaitStage(v, "maintenance")
			n, err := b.node(v)
			require.NoError(t, err)
			assert.Equal(t, tc.problem, n.Problem)
			assert.Empty(t, n.Addresses)
		})
	}
}

func TestDiskImageNeedsNoInstallation(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	v := b.vm(1, func(m *guest.Machine) {
		m.CD = nil
		img := *iso("v1.12.4")
		img.Kind = "disk"
		m.Disks[0].Image = &img
	})
	v.on()
	b.apply(v, c.config(machine.TypeControlPlane, "cp-1", nil))
	c.bootstrap(v)
	b.awaitServing(v)
	assert.Empty(t, b.trace.events("talos.install"))
	_, rebooted := v.lastExit()
	assert.False(t, rebooted)
}
