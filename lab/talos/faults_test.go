// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos_test

import (
	"errors"
	"testing"
	"time"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/talos-proxmox/talos-proxmox/lab/fault"
)

func (b *bench) breaks(k fault.Kind, with map[string]string) fault.Fault {
	b.t.Helper()
	f, err := b.faults.Add(k, with)
	require.NoError(b.t, err)

	return f
}

// TestANodeThatGoesWrong breaks one control plane in every way that leaves it standing, and mends it.
func TestANodeThatGoesWrong(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	v := c.up(1)[0]
	node := map[string]string{"node": "vm-1"}

	t.Run("etcd is lost", func(*testing.T) {
		lost := b.breaks(fault.EtcdLost, node)
		b.eventually("etcd stops", func() error {
			services, err := c.client(v).ServiceInfo(b.ctx, "etcd")
			if err != nil {
				return err
			}
			if s := services[0].Service; s.GetState() != "Waiting" || s.GetHealth().GetHealthy() {
				return errors.New(s.GetState())
			}

			return nil
		})
		require.NoError(t, b.faults.Remove(lost.ID))
		b.awaitServing(v)
	})

	t.Run("its certificate has expired", func(*testing.T) {
		expired := b.breaks(fault.CertificateExpired, node)
		_, err := c.client(v).Version(b.ctx)
		require.ErrorContains(t, err, "x509: certificate has expired or is not yet valid")
		require.NoError(t, b.faults.Remove(expired.ID))
		_, err = c.client(v).Version(b.ctx)
		require.NoError(t, err)
	})

	t.Run("its clock is wrong", func(*testing.T) {
		skewed := b.breaks(fault.ClockSkew, map[string]string{"node": "vm-1", "by": "-9000h"})
		_, err := c.client(v).Version(b.ctx)
		require.Error(t, err, "the caller's certificate is not valid yet on the node")
		require.NoError(t, b.faults.Remove(skewed.ID))
		_, err = c.client(v).Version(b.ctx)
		require.NoError(t, err)
	})

	t.Run("its API server flaps", func(*testing.T) {
		flaps := b.breaks(fault.KubeFlap, map[string]string{"node": "vm-1", "up": "10ms", "down": "100ms"})
		dial := func() error {
			conn, err := b.net.DialContext(b.ctx, "tcp", v.addr()+":6443")
			if err == nil {
				_ = conn.Close()
			}

			return err
		}
		for range 2 {
			b.eventually("it goes", func() error {
				if dial() == nil {
					return errors.New("it answers")
				}

				return nil
			})
			b.eventually("it comes", dial)
		}
		require.NoError(t, b.faults.Remove(flaps.ID))
		b.eventually("it stays", dial)
	})

	t.Run("its API fails", func(*testing.T) {
		b.breaks(fault.APIError, map[string]string{"api": "talos", "node": "vm-1", "call": "Version", "message": "EOF", "count": "1"})
		_, err := c.client(v).Version(b.ctx)
		require.EqualError(t, err, "rpc error: code = Unavailable desc = EOF")
	})
}

// TestATalosNodeIsLostAroundAnApply: before, the node has no configuration; during, nobody is answered.
func TestATalosNodeIsLostAroundAnApply(t *testing.T) {
	t.Parallel()
	for _, when := range []string{fault.BeforeApply, fault.DuringApply, fault.AfterApply} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			c := b.cluster()
			v := b.vm(1, nil)
			lost := make(chan struct{}, 1)
			v.m.Lose = func(<-chan struct{}) {
				lost <- struct{}{}
				v.off()
			}
			b.breaks(fault.NodeLost, map[string]string{"node": "vm-1", "when": when})
			v.on()
			b.awaitStage(v, "maintenance")

			_, err := b.insecure(v).ApplyConfiguration(b.ctx, &machineapi.ApplyConfigurationRequest{
				Data: c.config(machine.TypeControlPlane, "cp-1", nil),
			})
			if when == fault.AfterApply {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, "code = Unavailable")
			}
			<-lost
			<-v.done
			if when == fault.BeforeApply {
				assert.Empty(t, v.disk, "nothing was installed")
			}
		})
	}
}

// TestBootstrapWaitsForTheTime: a node whose clock is not synchronised is not bootstrapped.
func TestBootstrapWaitsForTheTime(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	v := b.vm(1, nil)
	v.on()
	b.awaitStage(v, "maintenance")
	b.apply(v, c.config(machine.TypeControlPlane, "cp-1", nil))
	skew := b.breaks(fault.ClockSkew, map[string]string{"node": "cp-1", "by": "1m"})
	b.eventually("it refuses", func() error {
		err := c.client(v).Bootstrap(b.ctx, &machineapi.BootstrapRequest{})
		if err == nil {
			return errors.New("it was bootstrapped")
		}
		if err.Error() != "rpc error: code = FailedPrecondition desc = time is not in sync yet" {
			return err
		}

		return nil
	})
	answer, err := c.client(v).TimeClient.Time(b.ctx, &emptypb.Empty{})
	require.NoError(t, err)
	ahead := answer.GetMessages()[0].GetLocaltime().AsTime().Sub(answer.GetMessages()[0].GetRemotetime().AsTime())
	assert.InDelta(t, time.Minute, ahead, float64(time.Second))

	require.NoError(t, b.faults.Remove(skew.ID))
	b.eventually("it is bootstrapped", func() error { return c.client(v).Bootstrap(b.ctx, &machineapi.BootstrapRequest{}) })
	b.awaitServing(v)
}
