// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"
)

// These hold the lab against what genuine Talos v1.12.6 was seen to do, step by step.

func TestAPartialConfigurationKeepsMaintenance(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	v := b.vm(1, nil)
	v.on()
	b.awaitStage(v, "maintenance")
	c := b.insecure(v)
	apply := func(data string, dry bool) *machineapi.ApplyConfiguration {
		r, err := c.ApplyConfiguration(b.ctx, &machineapi.ApplyConfigurationRequest{Data: []byte(data), DryRun: dry})
		require.NoError(t, err)

		return r.GetMessages()[0]
	}

	apply("apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: x\nauto: \"off\"\n", false)
	name, err := safe.StateGetByID[*network.HostnameStatus](b.ctx, c.COSI, network.HostnameID)
	require.NoError(t, err)
	assert.Equal(t, "x", name.TypedSpec().Hostname)
	n, err := b.node(v)
	require.NoError(t, err)
	assert.Equal(t, "maintenance", n.Stage)
	assert.Equal(t, "Dry run summary:\nNode is running in maintenance mode and does not have a config yet.",
		apply(string(b.cluster().config(machine.TypeControlPlane, "n1", nil)), true).GetModeDetails())
}

func TestARefusalKeepsWhatIsBeingTried(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	v := c.up(1)[0]
	change := func(f func(*v1alpha1.Config)) []byte { return c.config(machine.TypeControlPlane, "cp-1", f) }
	label := change(func(cfg *v1alpha1.Config) { cfg.MachineConfig.MachineNodeLabels = map[string]string{"zone": "a"} })
	env := change(func(cfg *v1alpha1.Config) {
		cfg.MachineConfig.MachineEnv = map[string]string{"A": "b"} // what 1.12 has
	})
	apply := func(data []byte, mode machineapi.ApplyConfigurationRequest_Mode) error {
		_, err := c.client(v).ApplyConfiguration(b.ctx, &machineapi.ApplyConfigurationRequest{
			Data: data, Mode: mode, TryModeTimeout: durationpb.New(200 * time.Second),
		})

		return err
	}
	zone := func(id string) string {
		r, err := safe.StateGetByID[*config.MachineConfig](b.ctx, c.client(v).COSI, id)
		if err != nil {
			return err.Error()
		}

		return r.Provider().RawV1Alpha1().MachineConfig.MachineNodeLabels["zone"]
	}

	require.Contains(t, zone(config.PersistentID), "doesn't exist", "nothing was applied since it booted")
	require.NoError(t, apply(label, machineapi.ApplyConfigurationRequest_STAGED))
	assert.Equal(t, "a", zone(config.PersistentID))
	assert.Empty(t, zone(config.ActiveID))

	require.NoError(t, apply(label, machineapi.ApplyConfigurationRequest_TRY))
	err := apply(env, machineapi.ApplyConfigurationRequest_NO_REBOOT)
	assert.Equal(t, codes.InvalidArgument, client.StatusCode(err))
	assert.ErrorContains(t, err, "this config change can't be applied in immediate mode\ndiff:")
	require.NoError(t, b.clock.Sleep(b.ctx, 400*time.Second))
	assert.Equal(t, "a", zone(config.ActiveID), "what was tried for a while stays")
}

// TestAFirewallLetsInWhatItsRulesSay tries a firewall that knows no port of the Talos API: who is connected stays, nobody
// else gets in, and the node takes it back.
func TestAFirewallLetsInWhatItsRulesSay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	v := c.up(1)[0]
	connected := c.client(v)
	config := c.config(machine.TypeControlPlane, "cp-1", func(*v1alpha1.Config) {})
	closed := append(slices.Clone(config), []byte(`---
apiVersion: v1alpha1
kind: NetworkDefaultActionConfig
ingress: block
---
apiVersion: v1alpha1
kind: NetworkRuleConfig
name: kubernetes
portSelector: {ports: [6443], protocol: tcp}
ingress: [{subnet: 0.0.0.0/0}]
`)...)
	_, err := connected.ApplyConfiguration(b.ctx, &machineapi.ApplyConfigurationRequest{
		Data: closed, Mode: machineapi.ApplyConfigurationRequest_TRY, TryModeTimeout: durationpb.New(2 * time.Second),
	})
	require.NoError(t, err)
	_, err = connected.Version(b.ctx)
	require.NoError(t, err, "the connection is older than the firewall")
	calling, cancel := context.WithTimeout(b.ctx, time.Second)
	defer cancel()
	_, err = c.client(v).Version(calling)
	require.Error(t, err)
	b.eventually("the node takes it back", func() error {
		_, err := c.client(v).Version(b.ctx)

		return err
	})
}

func TestBootstrapTwice(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.clock.Speed = 20 // so that both come before etcd has started
	c, v := b.unfinished()
	bootstrap := func() error { return c.client(v).Bootstrap(b.ctx, &machineapi.BootstrapRequest{}) }
	require.NoError(t, bootstrap())
	require.NoError(t, bootstrap(), "etcd has written nothing yet")
	b.eventually("its data are there", func() error {
		if code := client.StatusCode(bootstrap()); code != codes.AlreadyExists {
			return fmt.Errorf("%s", code)
		}

		return nil
	})
	assert.Len(t, b.nodes.Status().Clusters, 1)
}

func TestWithoutEtcdCallersWait(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c, v := b.unfinished()
	for name, call := range map[string]func(context.Context) error{
		"members": func(ctx context.Context) error {
			_, err := c.client(v).EtcdMemberList(ctx, &machineapi.EtcdMemberListRequest{})

			return err
		},
		"status": func(ctx context.Context) error {
			_, err := c.client(v).EtcdStatus(ctx)

			return err
		},
		"leave": func(ctx context.Context) error {
			return c.client(v).EtcdLeaveCluster(ctx, &machineapi.EtcdLeaveClusterRequest{})
		},
	} {
		ctx, cancel := context.WithTimeout(b.ctx, 100*time.Millisecond)
		assert.Equal(t, codes.DeadlineExceeded, client.StatusCode(call(ctx)), name)
		cancel()
	}
}
