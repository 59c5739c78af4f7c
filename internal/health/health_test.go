// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package health_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster/clustertest"
	"github.com/talos-proxmox/talos-proxmox/internal/health"
)

func TestHealthyFindsTheFirstCheckThatFails(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		change func(*testing.T, *clustertest.Fake)
		want   string
	}{
		"a node is off": {
			func(_ *testing.T, c *clustertest.Fake) { c.Nodes[clustertest.Address(4)].Unreachable = true },
			"cluster \"test\" is not healthy: check \"the Talos API answers on every node\" fails on node node-4 (10.0.0.4): connection refused\n" +
				"  look at: the console of node-4; is it powered on, is 10.0.0.4 its address, is port 50000 reachable from here? " +
				"`pulumi up --refresh` starts a VM of the stack that is off",
		},
		"a node still boots": {
			func(_ *testing.T, c *clustertest.Fake) {
				c.Nodes[clustertest.Address(2)].Stage, c.Nodes[clustertest.Address(2)].Unmet = "booting", []string{"nodeReady: not yet"}
			},
			"cluster \"test\" is not healthy: check \"every node has finished booting\" fails on node node-2 (10.0.0.2): " +
				"the machine is in stage \"booting\": nodeReady: not yet\n  look at: talosctl -n 10.0.0.2 dmesg",
		},
		"etcd is preparing": {
			func(_ *testing.T, c *clustertest.Fake) {
				c.Nodes[clustertest.Address(3)].Services["etcd"] = cluster.Service{State: "Preparing"}
			},
			"cluster \"test\" is not healthy: check \"etcd is healthy on every control plane\" fails on node node-3 (10.0.0.3): " +
				"service etcd is in state Preparing\n  look at: talosctl -n 10.0.0.3 service etcd; talosctl -n 10.0.0.3 logs etcd",
		},
		"a removed control plane is still a member": {
			func(_ *testing.T, c *clustertest.Fake) {
				c.Nodes[clustertest.Address(1)].Members = append(c.Nodes[clustertest.Address(1)].Members[:3:3], cluster.EtcdMember{Hostname: "gone"})
			},
			"cluster \"test\" is not healthy: check \"etcd has the control planes as members\" fails on node node-1 (10.0.0.1): " +
				"etcd has a member \"gone\" that is no control plane of the cluster\n  look at: talosctl -n 10.0.0.1 etcd members",
		},
		"a control plane is a learner": {
			func(_ *testing.T, c *clustertest.Fake) {
				members := append([]cluster.EtcdMember{}, c.Nodes[clustertest.Address(2)].Members...)
				members[2].Learner = true
				c.Nodes[clustertest.Address(2)].Members = members
			},
			"cluster \"test\" is not healthy: check \"etcd has the control planes as members\" fails on node node-2 (10.0.0.2): " +
				"node-3 (10.0.0.3) is still a learner in etcd\n  look at: talosctl -n 10.0.0.2 etcd members",
		},
		"no kubeconfig can be had": {
			func(_ *testing.T, c *clustertest.Fake) { c.AccessError = errors.New("no control plane gives access") },
			"cluster \"test\" is not healthy: check \"the Kubernetes API answers\" fails: no control plane gives access",
		},
		"a static pod is not ready": {
			func(_ *testing.T, c *clustertest.Fake) { c.Nodes[clustertest.Address(2)].Pods[2].Ready = false },
			"cluster \"test\" is not healthy: check \"the control plane's static pods are ready\" fails on node node-2 (10.0.0.2): " +
				"static pod kube-scheduler is not ready\n  look at: talosctl -n 10.0.0.2 containers -k; talosctl -n 10.0.0.2 get staticpodstatus",
		},
		"a node never registered": {
			func(t *testing.T, c *clustertest.Fake) {
				t.Helper()
				require.NoError(t, c.API.CoreV1().Nodes().Delete(t.Context(), "node-4", metav1.DeleteOptions{}))
			},
			"cluster \"test\" is not healthy: check \"every node is registered in Kubernetes\" fails on node node-4 (10.0.0.4): " +
				"Kubernetes has no node node-4\n  look at: talosctl -n 10.0.0.4 logs kubelet",
		},
		"a node has no pod network": {
			func(t *testing.T, c *clustertest.Fake) {
				t.Helper()
				n := clustertest.KubernetesNode(cluster.Member{Hostname: "node-4"}, corev1.ConditionFalse)
				_, err := c.API.CoreV1().Nodes().UpdateStatus(t.Context(), n, metav1.UpdateOptions{})
				require.NoError(t, err)
			},
			"cluster \"test\" is not healthy: check \"every Kubernetes node is ready\" fails on node node-4 (10.0.0.4): " +
				"the node is not ready: NetworkPluginNotReady: cni plugin not initialized\n" +
				"  look at: kubectl describe node node-4; the pod network's pods on it",
		},
		"CoreDNS is one short": {
			func(t *testing.T, c *clustertest.Fake) {
				t.Helper()
				d, err := c.API.AppsV1().Deployments("kube-system").Get(t.Context(), "coredns", metav1.GetOptions{})
				require.NoError(t, err)
				d.Status.ReadyReplicas = 1
				_, err = c.API.AppsV1().Deployments("kube-system").UpdateStatus(t.Context(), d, metav1.UpdateOptions{})
				require.NoError(t, err)
			},
			"cluster \"test\" is not healthy: check \"CoreDNS is ready\" fails: 1 of 2 pods of deployment coredns are ready\n" +
				"  look at: kubectl -n kube-system describe deployment coredns",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			d := clustertest.Describe(3, 1)
			c := clustertest.Healthy(d)
			require.NoError(t, health.Healthy(t.Context(), c, d, time.Second), "before the change")

			test.change(t, c)

			assert.EqualError(t, health.Healthy(t.Context(), c, d, time.Second), test.want)
		})
	}
}

func TestHealthyLeavesOutWhatNeedsAPodNetwork(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(1, 1)
	c := clustertest.Healthy(d)
	_, err := c.API.CoreV1().Nodes().UpdateStatus(t.Context(),
		clustertest.KubernetesNode(d.Members[1], corev1.ConditionFalse), metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Error(t, health.Healthy(t.Context(), c, d, time.Second))

	d.SkipKubernetes = true

	assert.NoError(t, health.Healthy(t.Context(), c, d, time.Second))
}

func TestWaitHealthyReportsWhatItWaitsForAndGoesOn(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(3, 0)
	c := clustertest.Healthy(d)
	c.Change(clustertest.Address(2), func(n *clustertest.Node) { n.Stage = "booting" })
	var lines []string
	limit := cluster.PollOptions{Timeout: time.Minute, Interval: time.Millisecond, Call: time.Second}

	err := health.WaitHealthy(t.Context(), c, func() cluster.Cluster { return d }, limit, func(line string) {
		lines = append(lines, line)
		// What was waited for comes true, and the next thing is missing.
		switch len(lines) {
		case 1:
			c.Change(clustertest.Address(2), func(n *clustertest.Node) { n.Stage = "running" })
			c.Change(clustertest.Address(3), func(n *clustertest.Node) { n.Services["etcd"] = cluster.Service{State: "Preparing"} })
		case 2:
			c.Change(clustertest.Address(3), func(n *clustertest.Node) { n.Services["etcd"] = cluster.Service{State: "Running", Healthy: true} })
		}
	}, nil)

	require.NoError(t, err)
	assert.Equal(t, []string{
		`waiting: every node has finished booting: node-2 (10.0.0.2): the machine is in stage "booting"`,
		"waiting: etcd is healthy on every control plane: node-3 (10.0.0.3): service etcd is in state Preparing",
		`cluster "test" is healthy: 3 nodes`,
	}, lines)
}

func TestWaitHealthyEndsWithTheCheckThatFailed(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(3, 0)
	c := clustertest.Healthy(d)
	c.Change(clustertest.Address(3), func(n *clustertest.Node) { n.Unreachable = true })
	limit := cluster.PollOptions{Timeout: 50 * time.Millisecond, Interval: time.Millisecond, Call: time.Second}

	err := health.WaitHealthy(t.Context(), c, func() cluster.Cluster { return d }, limit, func(string) {}, nil)

	var found *health.Unhealthy
	require.ErrorAs(t, err, &found)
	assert.Equal(t, "node-3 (10.0.0.3)", found.Node)
	assert.Equal(t, "the Talos API answers on every node", found.Check)
	assert.Equal(t, limit.Timeout, found.Waited)
	assert.ErrorIs(t, err, clustertest.ErrUnreachable)
}

func TestWaitHealthyStopsWithItsContext(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(1, 0)
	c := clustertest.Healthy(d)
	c.Change(clustertest.Address(1), func(n *clustertest.Node) { n.Unreachable = true })
	ctx, cancel := context.WithCancel(t.Context())

	err := health.WaitHealthy(ctx, c, func() cluster.Cluster { return d }, cluster.DefaultPollOptions(time.Hour), func(string) { cancel() }, nil)

	require.ErrorIs(t, err, context.Canceled)
	assert.True(t, strings.HasPrefix(err.Error(), `waiting for cluster "test"`), err.Error())
}

func TestWaitSchedulable(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(1, 2)
	limit := cluster.PollOptions{Timeout: 50 * time.Millisecond, Interval: time.Millisecond, Call: time.Second}
	for name, test := range map[string]struct {
		nodes []runtime.Object
		want  string
	}{
		"one worker is ready, others join": {
			[]runtime.Object{
				tainted(clustertest.KubernetesNode(d.Members[0], corev1.ConditionTrue)),
				clustertest.KubernetesNode(d.Members[1], corev1.ConditionFalse),
				clustertest.KubernetesNode(d.Members[2], corev1.ConditionTrue),
			}, "",
		},
		"the control plane alone": {
			[]runtime.Object{tainted(clustertest.KubernetesNode(d.Members[0], corev1.ConditionTrue))},
			`check "a Kubernetes node takes pods" fails on node node-1 (10.0.0.1): the node has the taint node-role.kubernetes.io/control-plane:NoSchedule`,
		},
		"no node yet": {nil, `check "a Kubernetes node takes pods" fails: no node is registered`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c := clustertest.Healthy(d)
			c.API = fake.NewClientset(test.nodes...)
			for i := range d.Members { // nobody asks the nodes themselves
				c.Nodes[clustertest.Address(i+1)].Unreachable = true
			}
			err := health.WaitSchedulable(t.Context(), c, d, limit, func(string) {})
			if test.want == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, test.want)
			}
		})
	}
}

func tainted(n *corev1.Node) *corev1.Node {
	n.Spec.Taints = []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}}

	return n
}
