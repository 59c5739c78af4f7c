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
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

func TestApplyModes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	vms := c.up(1)
	admin := c.client(vms[0])
	label := c.config(machine.TypeControlPlane, "cp-1", func(cfg *v1alpha1.Config) {
		cfg.MachineConfig.MachineNodeLabels = map[string]string{"zone": "a"}
	})
	reboot := c.config(machine.TypeControlPlane, "cp-1", func(cfg *v1alpha1.Config) {
		cfg.MachineConfig.MachineEnv = map[string]string{"A": "b"}
	})
	apply := func(data []byte, mode machineapi.ApplyConfigurationRequest_Mode, dry bool) (*machineapi.ApplyConfiguration, error) {
		r, err := admin.ApplyConfiguration(b.ctx, &machineapi.ApplyConfigurationRequest{Data: data, Mode: mode, DryRun: dry})
		if err != nil {
			return nil, err
		}

		return r.GetMessages()[0], nil
	}

	r, err := apply(label, machineapi.ApplyConfigurationRequest_AUTO, true)
	require.NoError(t, err)
	assert.Equal(t, machineapi.ApplyConfigurationRequest_NO_REBOOT, r.GetMode())
	assert.Contains(t, r.GetModeDetails(), "Applied configuration without a reboot (skipped in dry-run).")
	assert.Contains(t, r.GetModeDetails(), "zone: a")

	r, err = apply(label, machineapi.ApplyConfigurationRequest_AUTO, false)
	require.NoError(t, err)
	assert.Equal(t, "Applied configuration without a reboot", r.GetModeDetails())
	b.eventually("the label is on the Node", func() error {
		spec, err := b.kube.last().spec("cp-1")
		if err == nil && spec.Labels["zone"] != "a" {
			err = fmt.Errorf("labels are %v", spec.Labels)
		}

		return err
	})

	_, err = apply(reboot, machineapi.ApplyConfigurationRequest_NO_REBOOT, false)
	assert.Equal(t, codes.InvalidArgument, client.StatusCode(err))
	assert.ErrorContains(t, err, "this config change can't be applied in immediate mode")
	_, err = apply([]byte("nonsense"), machineapi.ApplyConfigurationRequest_AUTO, false)
	assert.Equal(t, codes.InvalidArgument, client.StatusCode(err), "a running node refuses for good what it cannot parse")

	r, err = apply(reboot, machineapi.ApplyConfigurationRequest_AUTO, false)
	require.NoError(t, err)
	assert.Equal(t, machineapi.ApplyConfigurationRequest_REBOOT, r.GetMode())
	b.eventually("the node reboots", func() error {
		if exit, ok := vms[0].lastExit(); !ok || exit != guest.ExitReboot || len(b.trace.events("talos.reboot")) == 0 {
			return assert.AnError
		}

		return nil
	})
	b.awaitServing(vms[0])
}

func TestKubernetesVersionFollowsTheConfiguration(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	vms := c.up(3)
	next := func(cfg *v1alpha1.Config) {
		cfg.ClusterConfig.APIServerConfig.ContainerImage = "registry.k8s.io/kube-apiserver:v1.35.1"
		cfg.MachineConfig.MachineKubelet.KubeletImage = "ghcr.io/siderolabs/kubelet:v1.35.1"
	}

	for i, v := range vms {
		_, err := c.client(v).ApplyConfiguration(b.ctx, &machineapi.ApplyConfigurationRequest{
			Data: c.config(machine.TypeControlPlane, fmt.Sprintf("cp-%d", i+1), next), Mode: machineapi.ApplyConfigurationRequest_NO_REBOOT,
		})
		require.NoError(t, err)
		if i < 2 {
			assert.Equal(t, "v1.35.0", b.kube.last().config.Version, "the oldest control plane decides")
		}
	}
	b.eventually("the API server is the new one", func() error {
		if v := b.kube.last().config.Version; v != "v1.35.1" {
			return errors.New("version is " + v)
		}

		return nil
	})
	b.awaitServing(vms...)
	assert.Equal(t, "v1.35.1", b.spec("cp-3").KubeletVersion)
	assert.Empty(t, b.trace.events("node.down"), "no node counts as down")
}
