// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

func TestPitfallHostnameTwice(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	v := b.vm(1, nil)
	v.on()
	b.awaitStage(v, "maintenance")

	named := c.config(machine.TypeControlPlane, "cp-1", func(cfg *v1alpha1.Config) {
		cfg.MachineConfig.MachineNetwork.NetworkHostname = "cp-1"
	})
	both := bytes.Replace(c.config(machine.TypeControlPlane, "cp-1", nil), []byte(`auto: "off"`), []byte("auto: stable"), 1)
	for name, tc := range map[string]struct {
		data []byte
		want string
	}{
		"in the document and in the machine": {named, "static hostname is already set in v1alpha1 config"},
		"a name and an automatic one":        {both, "'auto' and 'hostname' cannot be set at the same time"},
	} {
		_, err := b.insecure(v).ApplyConfiguration(b.ctx, &machineapi.ApplyConfigurationRequest{Data: tc.data})
		assert.Equal(t, codes.InvalidArgument, client.StatusCode(err), name)
		assert.ErrorContains(t, err, tc.want, name)
	}
}

func TestPitfallAnotherInstallerLosesTheExtensions(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	v := b.vm(1, nil)
	v.on()
	b.apply(v, c.config(machine.TypeControlPlane, "cp-1", func(cfg *v1alpha1.Config) {
		cfg.MachineConfig.MachineInstall.InstallImage = installer + schematicB + ":v1.12.4"
	}))
	c.bootstrap(v)
	b.awaitServing(v)

	require.Equal(t, schematicA, v.m.CD.Schematic, "what it was booted from")
	n, err := b.node(v)
	require.NoError(t, err)
	assert.Equal(t, schematicB, n.Schematic, "what it runs")
	assert.NotContains(t, b.spec("cp-1").Annotations, "extensions.talos.dev/qemu-guest-agent")
}

func TestPitfallInstallImageUpgradesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	vms := c.up(1)

	r, err := c.client(vms[0]).ApplyConfiguration(b.ctx, &machineapi.ApplyConfigurationRequest{
		Data: c.config(machine.TypeControlPlane, "cp-1", func(cfg *v1alpha1.Config) {
			cfg.MachineConfig.MachineInstall.InstallImage = installer + schematicB + ":v1.12.5"
		}),
		Mode: machineapi.ApplyConfigurationRequest_AUTO,
	})
	require.NoError(t, err)
	assert.Equal(t, machineapi.ApplyConfigurationRequest_NO_REBOOT, r.GetMessages()[0].GetMode())
	vms[0].cut()
	vms[0].on()
	b.awaitServing(vms[0])
	n, err := b.node(vms[0])
	require.NoError(t, err)
	assert.Equal(t, "v1.12.4", n.Version, "not even after a reboot")
	assert.Empty(t, b.trace.events("talos.upgrade"))
}

func TestPitfallVIPIsNobodysBeforeBootstrap(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	v := b.vm(1, nil)
	v.on()
	b.apply(v, c.config(machine.TypeControlPlane, "cp-1", nil))
	b.eventually("the node waits for its bootstrap", func() error {
		if _, err := c.client(v).Version(b.ctx); err != nil {
			return err
		}
		n, err := b.node(v)
		if err == nil && (n.Stage == "maintenance" || n.Serving) {
			err = fmt.Errorf("stage %s", n.Stage)
		}

		return err
	})
	assert.Empty(t, b.net.Owner(vmAddr("10.0.0.9")))
	for _, port := range []string{"50000", "6443"} {
		_, err := b.net.DialContext(b.ctx, "tcp", "10.0.0.9:"+port)
		assert.Error(t, err, "whoever bootstraps through the VIP waits for ever")
	}

	c.bootstrap(v)
	b.awaitServing(v)
	b.eventually("somebody holds the VIP", func() error {
		if b.net.Owner(vmAddr("10.0.0.9")) == "" {
			return errors.New("nobody does")
		}

		return nil
	})
}

// Two of three control planes that reboot at the same time, as a provider does with edits in parallel.
func TestPitfallRebootsAtOnceLoseTheQuorum(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	vms := c.up(3)

	vms[1].cut()
	_, err := c.client(vms[0]).EtcdMemberList(b.ctx, &machineapi.EtcdMemberListRequest{})
	require.NoError(t, err, "one may be down")
	vms[2].cut()
	_, err = c.client(vms[0]).EtcdMemberList(b.ctx, &machineapi.EtcdMemberListRequest{})
	require.ErrorContains(t, err, "etcdserver: no leader")
	b.eventually("there is no API", func() error {
		conn, err := b.net.DialContext(b.ctx, "tcp", vms[0].addr()+":6443")
		if err == nil {
			_ = conn.Close()

			return errors.New("kube-apiserver answers")
		}

		return nil
	})
	assert.False(t, b.nodes.Status().Clusters[0].Healthy)
}

// A control plane that is only deleted stays a member of etcd, and the next loss is one too many.
func TestPitfallDeletedControlPlaneStaysAMember(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	vms := c.up(3)

	vms[2].cut()
	r, err := c.client(vms[0]).EtcdMemberList(b.ctx, &machineapi.EtcdMemberListRequest{})
	require.NoError(t, err)
	assert.Len(t, r.GetMessages()[0].GetMembers(), 3)
	vms[1].cut()
	_, err = c.client(vms[0]).EtcdMemberList(b.ctx, &machineapi.EtcdMemberListRequest{})
	require.ErrorContains(t, err, "etcdserver: no leader", "two of three are gone, though the program knows of two in all")
}

// A new machine under an old name has no configuration, whatever the program's state says.
func TestPitfallReplacedMachineWaitsInMaintenance(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	vms := c.up(1)

	vms[0].cut()
	require.NoError(t, b.nodes.DiskDeleted(vms[0].disk))
	vms[0].disk = nil
	vms[0].on()
	b.awaitStage(vms[0], "maintenance")
	_, err := c.client(vms[0]).Version(b.ctx)
	require.Error(t, err, "its certificate is nobody's")
}

func TestPitfallFlagsWithoutTextAreLeftOut(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]map[string]string{"v1.12.4": {"v": "2", "cloud-provider": ""}, "v1.13.0": {"v": "2"}} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			c := b.cluster()
			v := b.vm(1, func(m *guest.Machine) { m.CD = iso(version) })
			v.on()
			b.apply(v, c.config(machine.TypeControlPlane, "cp-1", func(cfg *v1alpha1.Config) {
				cfg.MachineConfig.MachineInstall.InstallImage = installer + schematicA + ":" + version
				cfg.ClusterConfig.APIServerConfig.ExtraArgsConfig = meta.Args{
					"v": meta.NewArgValue("2", nil), "cloud-provider": meta.NewArgValue("", nil),
				}
			}))
			c.bootstrap(v)
			b.awaitServing(v)
			assert.Equal(t, want, b.kube.last().config.APIServerArgs)
		})
	}
}
