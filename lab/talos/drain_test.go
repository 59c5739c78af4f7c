// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos_test

import (
	"fmt"
	"testing"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// held returns a pod of a controller, which a drain evicts.
func held(name string) corev1.Pod {
	controller := true

	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "default", UID: "1",
		OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: name, Controller: &controller}},
	}}
}

// TestWhatDrains holds each way to end a power cycle against Talos's sequences: an upgrade and a shutdown by the API
// drain, a reboot and a shutdown by ACPI do not.
func TestWhatDrains(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end    func(*bench, *cluster, *vm) error
		drains bool
	}{
		"reboot": {func(b *bench, c *cluster, v *vm) error { return c.client(v).Reboot(b.ctx) }, false},
		"shutdown": {func(b *bench, c *cluster, v *vm) error {
			_, err := c.client(v).MachineClient.Shutdown(b.ctx, &machineapi.ShutdownRequest{})

			return err
		}, true},
		"forced shutdown": {func(b *bench, c *cluster, v *vm) error {
			_, err := c.client(v).MachineClient.Shutdown(b.ctx, &machineapi.ShutdownRequest{Force: true})

			return err
		}, false},
		"ACPI": {func(_ *bench, _ *cluster, v *vm) error {
			close(v.acpi)

			return nil
		}, false},
		"upgrade": {func(b *bench, c *cluster, v *vm) error {
			_, err := c.client(v).Upgrade(b.ctx, installer+schematicB+":v1.12.5", false, false) // what 1.12 has

			return err
		}, true},
		"staged upgrade": {func(b *bench, c *cluster, v *vm) error {
			_, err := c.client(v).Upgrade(b.ctx, installer+schematicB+":v1.12.5", true, false) // what 1.12 has

			return err
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			vms := b.cluster()
			all := vms.up(1)
			b.kube.api.set(func(a *fakeAPI) { a.pods = []corev1.Pod{held("web")} })
			require.NoError(t, c.end(b, vms, all[0]))
			b.eventually("the node goes down", func() error {
				if len(b.trace.events("node.serving")) == 0 {
					return fmt.Errorf("it serves")
				}

				return nil
			})
			assert.Equal(t, c.drains, len(b.trace.events("node.drain")) > 0)
			if c.drains {
				assert.Equal(t, []string{"web"}, b.kube.api.evictions())
			}
		})
	}
}

// TestADrainThatFailsFailsTheUpgrade: without its cordon nothing is upgraded, and the node goes on; what a disruption
// budget holds is only waited for.
func TestADrainThatFailsFailsTheUpgrade(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	v := c.up(1)[0]
	upgrade := func() {
		_, err := c.client(v).Upgrade(b.ctx, installer+schematicB+":v1.12.5", false, false) // what 1.12 has
		require.NoError(t, err)
	}

	b.kube.api.set(func(a *fakeAPI) { a.down = true })
	upgrade()
	b.eventually("the upgrade fails", func() error {
		for _, e := range b.trace.events("talos.upgrade") {
			if e.Error != "" {
				assert.Equal(t, "error running phase 1 in upgrade sequence: task 1/1: failed, context deadline exceeded", e.Error)

				return nil
			}
		}

		return assert.AnError
	})
	n, err := b.node(v)
	require.NoError(t, err)
	assert.True(t, n.Serving)
	assert.Equal(t, "v1.12.4", n.Version)

	b.kube.api.set(func(a *fakeAPI) { a.down, a.budget, a.pods = false, true, []corev1.Pod{held("web")} })
	upgrade()
	b.eventually("the node runs the new Talos", func() error {
		if n, err := b.node(v); err != nil || n.Version != "v1.12.5" || !n.Serving {
			return fmt.Errorf("%v %w", n, err)
		}

		return nil
	})
	b.eventually("Talos undoes its own cordon", func() error {
		if b.kube.api.isCordoned("cp-1") {
			return assert.AnError
		}

		return nil
	})
	assert.Empty(t, b.kube.api.evictions())
}

// TestASecondSequence: a reboot takes over from a reboot; what may not is accepted all the same, and the events say
// that it did not begin.
func TestASecondSequence(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	v := c.up(1)[0]
	b.kube.api.set(func(a *fakeAPI) { a.budget, a.pods = true, []corev1.Pod{held("web")} })
	_, err := c.client(v).MachineClient.Shutdown(b.ctx, &machineapi.ShutdownRequest{})
	require.NoError(t, err)
	require.NoError(t, c.client(v).Reboot(b.ctx), "it is told only later that it is locked out")
	_, err = c.client(v).MachineClient.Shutdown(b.ctx, &machineapi.ShutdownRequest{Force: true})
	require.NoError(t, err, "a shutdown takes over")
	<-v.done
	assert.Empty(t, b.trace.events("talos.reboot"))
}
