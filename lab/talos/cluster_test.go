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
	"google.golang.org/protobuf/types/known/emptypb"
)

// apply sends a configuration to a node in maintenance mode.
func (b *bench) apply(v *vm, data []byte) {
	b.t.Helper()
	b.awaitStage(v, "maintenance")
	c := b.insecure(v)
	b.eventually("apply", func() error {
		_, err := c.ApplyConfiguration(b.ctx, &machineapi.ApplyConfigurationRequest{Data: data})

		return err
	})
}

// up brings control planes from nothing to a healthy cluster.
func (c *cluster) up(count int) []*vm {
	b := c.bench
	b.t.Helper()
	var vms []*vm
	for i := range count {
		v := b.vm(1+i, nil)
		v.on()
		vms = append(vms, v)
	}
	for i, v := range vms {
		b.apply(v, c.config(machine.TypeControlPlane, fmt.Sprintf("cp-%d", i+1), nil))
	}
	c.bootstrap(vms[0])
	b.awaitServing(vms...)

	return vms
}

func (c *cluster) bootstrap(v *vm) {
	c.bench.t.Helper()
	admin := c.client(v)
	c.bench.eventually("bootstrap", func() error { return admin.Bootstrap(c.bench.ctx, &machineapi.BootstrapRequest{}) })
}

func TestThreeControlPlanesFromISO(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	vms := c.up(3)
	admin := c.client(vms[0])

	members, err := admin.EtcdMemberList(b.ctx, &machineapi.EtcdMemberListRequest{})
	require.NoError(t, err)
	var names []string
	for _, m := range members.GetMessages()[0].GetMembers() {
		assert.False(t, m.GetIsLearner(), "%s is still a learner", m.GetHostname())
		names = append(names, m.GetHostname())
	}
	assert.ElementsMatch(t, []string{"cp-1", "cp-2", "cp-3"}, names)

	all := client.WithNodes(b.ctx, vms[0].addr(), vms[1].addr(), vms[2].addr())
	version, err := admin.Version(all)
	require.NoError(t, err)
	require.Len(t, version.GetMessages(), 3)
	for i, m := range version.GetMessages() {
		assert.Equal(t, vms[i].addr(), m.GetMetadata().GetHostname())
		assert.Equal(t, "v1.12.4", m.GetVersion().GetTag())
		assert.Equal(t, "nocloud", m.GetPlatform().GetName())
	}

	services, err := admin.ServiceInfo(client.WithNode(b.ctx, vms[2].addr()), "etcd")
	require.NoError(t, err)
	require.Len(t, services, 1)
	assert.True(t, services[0].Service.GetHealth().GetHealthy())
	assert.Equal(t, "Running", services[0].Service.GetState())

	err = admin.Bootstrap(b.ctx, &machineapi.BootstrapRequest{})
	require.Error(t, err)
	assert.Equal(t, codes.AlreadyExists, client.StatusCode(err))
	assert.Contains(t, err.Error(), "etcd data directory is not empty")

	st := b.nodes.Status()
	require.Len(t, st.Clusters, 1)
	assert.True(t, st.Clusters[0].Healthy)
	assert.Equal(t, "v1.35.0", st.Clusters[0].Kubernetes)
	assert.Equal(t, 1, b.kube.started(), "joining control planes must not restart the API server")

	conn, err := b.net.DialContext(b.ctx, "tcp", "10.0.0.9:6443")
	require.NoError(t, err, "the VIP serves Kubernetes")
	assert.NoError(t, conn.Close())
}

func TestWorkerJoins(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	vms := c.up(1)

	worker := b.vm(21, nil)
	worker.on()
	b.apply(worker, c.config(machine.TypeWorker, "worker-1", nil))
	b.awaitServing(worker)
	spec := b.spec("worker-1")
	assert.False(t, spec.ControlPlane)
	assert.Equal(t, "v1.35.0", spec.KubeletVersion)
	assert.Equal(t, "Talos (v1.12.4)", spec.OSImage)

	_, err := c.client(worker).EtcdMemberList(b.ctx, &machineapi.EtcdMemberListRequest{})
	require.Error(t, err)
	assert.Contains(t, err.Error(), "member list is only available on control plane nodes")
	_, err = c.client(worker).Version(client.WithNode(b.ctx, vms[0].addr()))
	require.Error(t, err)
	assert.Equal(t, codes.PermissionDenied, client.StatusCode(err))
	assert.Contains(t, err.Error(), "no request forwarding")
	err = c.client(worker).Bootstrap(b.ctx, &machineapi.BootstrapRequest{})
	assert.ErrorContains(t, err, "bootstrap can only be performed on a control plane node")
}

func TestWorkerOfAnotherClusterStaysOut(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	c.up(1)

	stranger := b.vm(22, nil)
	stranger.on()
	b.apply(stranger, b.cluster().config(machine.TypeWorker, "stranger", nil))
	b.eventually("the kubelet is refused", func() error {
		n, err := b.node(stranger)
		if err == nil && n.Problem != "x509: certificate signed by unknown authority" {
			err = errors.New("problem is " + n.Problem)
		}

		return err
	})
	_, err := b.kube.last().spec("stranger")
	assert.Error(t, err)
}

func TestWrongCAIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	vms := c.up(1)

	_, err := b.cluster().client(vms[0]).Version(b.ctx)
	require.Error(t, err)
	assert.Contains(t, err.Error(), "certificate signed by unknown authority")

	_, err = b.insecure(vms[0]).MachineClient.Version(b.ctx, &emptypb.Empty{})
	require.Error(t, err, "a configured node wants a client certificate")
}
