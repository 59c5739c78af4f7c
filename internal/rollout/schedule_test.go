// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster/clustertest"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
)

// What the steps of an upgrade take on real machines.
const (
	pullTime    = 20 * time.Second
	evictTime   = 15 * time.Second
	installTime = 30 * time.Second
	rebootTime  = 70 * time.Second
	joinTime    = 20 * time.Second
	etcdTime    = 10 * time.Second

	workerTime = pullTime + evictTime + installTime + rebootTime + joinTime
	planeTime  = workerTime + etcdTime
)

// lifelike plays a cluster whose nodes take their time. Each has a pod to be drained.
type lifelike struct {
	*clustertest.Fake

	described cluster.Cluster
}

func newLifelike(t *testing.T, planes, workers int) *lifelike {
	t.Helper()

	d := clustertest.Describe(planes, workers)
	var pods []runtime.Object
	for _, m := range d.Members {
		pods = append(pods, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: "on-" + m.Name,
				OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Controller: new(true)}},
			},
			Spec: corev1.PodSpec{NodeName: m.Hostname},
		})
	}
	l := &lifelike{Fake: clustertest.Healthy(d, pods...), described: d}
	api, ok := l.API.(*fake.Clientset)
	require.True(t, ok)
	leaving := sync.Map{}
	api.PrependReactor("create", "pods", func(action kubetesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "eviction" {
			return false, nil, nil
		}
		pod, _ := action.(kubetesting.CreateAction).GetObject().(metav1.Object)
		if _, twice := leaving.LoadOrStore(pod.GetName(), true); !twice {
			time.AfterFunc(evictTime, func() {
				_ = api.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), pod.GetNamespace(), pod.GetName())
			})
		}

		return true, nil, nil
	})

	return l
}

func (l *lifelike) Talos(context.Context) (cluster.Talos, error) { return l, nil }

// Pull takes its time.
func (l *lifelike) Pull(ctx context.Context, address string, component cluster.Component, image string) error {
	time.Sleep(pullTime)

	return l.Fake.Pull(ctx, address, component, image)
}

// Upgrade installs the image; the node is away until it has rebooted, then joins.
func (l *lifelike) Upgrade(_ context.Context, address, image string, _ func(string)) error {
	time.Sleep(installTime)
	l.Change(address, func(n *clustertest.Node) {
		n.Unreachable = true
		l.Upgraded = append(l.Upgraded, address+" "+image)
	})
	time.AfterFunc(rebootTime, func() {
		plane := false
		l.Change(address, func(n *clustertest.Node) {
			n.Unreachable, n.Stage = false, "booting"
			n.Reboot(image)
			_, plane = n.Services["etcd"]
		})
		joined := joinTime
		if plane {
			joined += etcdTime
		}
		time.AfterFunc(joined, func() { l.Change(address, func(n *clustertest.Node) { n.Stage = "running" }) })
	})

	return nil
}

// upgrade upgrades all nodes as the engine does: each as soon as those have ended that come before it.
func (l *lifelike) upgrade(t *testing.T, maxUnavailable int) time.Duration {
	t.Helper()

	u := rollout.Upgrade{
		Access: l, Cluster: l.described, Gate: rollout.NewGate(maxUnavailable),
		Drain:  rollout.Drain{Timeout: 5 * time.Minute, Interval: 5 * time.Second},
		Poll:   cluster.DefaultPollOptions(20 * time.Minute),
		Report: func(string) {},
	}
	ended := map[string]chan struct{}{}
	for _, m := range l.described.Members {
		ended[m.Name] = make(chan struct{})
	}
	before := rollout.Order(l.described.Members, maxUnavailable)
	began := time.Now()
	var all sync.WaitGroup
	for _, m := range l.described.Members {
		all.Go(func() {
			defer close(ended[m.Name])
			for _, earlier := range before[m.Name] {
				<-ended[earlier.Name]
			}
			assert.NoError(t, u.Run(t.Context(), m, newer))
		})
	}
	all.Wait()

	return time.Since(began)
}

// TestARollingUpgradeTakesLittleMoreThanItsNodes holds the schedule: nobody waits without need. The clock is the test's
// own, so that the figures are the same everywhere.
func TestARollingUpgradeTakesLittleMoreThanItsNodes(t *testing.T) {
	t.Parallel()

	const planes, workers, most = 3, 30, 1.15
	for _, maxUnavailable := range []int{1, 3} {
		t.Run(fmt.Sprintf("maxUnavailable %d", maxUnavailable), func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) {
				l := newLifelike(t, planes, workers)
				took := l.upgrade(t, maxUnavailable)
				least := planes*planeTime + workers/time.Duration(maxUnavailable)*workerTime
				t.Logf("%s for what takes %s: %.3f", took, least, took.Seconds()/least.Seconds())
				assert.LessOrEqual(t, took.Seconds(), most*least.Seconds())
				assert.Len(t, l.Upgraded, planes+workers)
			})
		})
	}
}

func TestOrderOfUpgrades(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(2, 3)
	cp1, cp2, w1, w2, w3 := d.Members[0], d.Members[1], d.Members[2], d.Members[3], d.Members[4]

	assert.Equal(t, map[string][]cluster.Member{
		cp2.Name: {cp1}, w1.Name: {cp2}, w2.Name: {cp2}, w3.Name: {cp2, w1},
	}, rollout.Order([]cluster.Member{w1, cp1, w2, cp2, w3}, 2), "control planes first, whatever the names are")
}
