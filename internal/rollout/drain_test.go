// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
)

// pod returns one on node-1 that its controller recreates elsewhere.
func pod(name string, change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "apps", Name: name,
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{NodeName: "node-1"},
	}
	if change != nil {
		change(p)
	}

	return p
}

// withEvictions returns a Kubernetes API that evicts, but for the first refusals of each pod.
func withEvictions(refusals int, objects ...runtime.Object) (*fake.Clientset, func() []string) {
	api := fake.NewClientset(append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}})...)
	var mu sync.Mutex
	var evicted []string
	refused := map[string]int{}
	api.PrependReactor("create", "pods", func(action kubetesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "eviction" {
			return false, nil, nil
		}
		object, _ := action.(kubetesting.CreateAction).GetObject().(metav1.Object)
		mu.Lock()
		defer mu.Unlock()
		name := object.GetName()
		if refused[name] < refusals {
			refused[name]++

			return true, nil, apierrors.NewTooManyRequests("the disruption budget allows none", 1)
		}
		evicted = append(evicted, name)

		return true, nil, api.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), object.GetNamespace(), name)
	})

	return api, func() []string {
		mu.Lock()
		defer mu.Unlock()

		return evicted
	}
}

func patient(timeout time.Duration) rollout.Drain {
	return rollout.Drain{Timeout: timeout, Interval: time.Millisecond}
}

func TestDrainEvictsWhatHasToGo(t *testing.T) {
	t.Parallel()

	api, evicted := withEvictions(2,
		pod("web", nil),
		pod("agent", func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet"}} }),
		pod("kube-apiserver", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }),
		pod("job", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
		pod("elsewhere", func(p *corev1.Pod) { p.Spec.NodeName = "node-2" }),
	)
	var lines []string

	require.NoError(t, patient(time.Minute).Empty(t.Context(), api, "node-1", func(l string) { lines = append(lines, l) }))

	assert.Equal(t, []string{"web"}, evicted())
	assert.Equal(t, []string{"draining node-1: waiting for apps/web"}, lines)
	n, err := api.CoreV1().Nodes().Get(t.Context(), "node-1", metav1.GetOptions{})
	require.NoError(t, err)
	assert.True(t, n.Spec.Unschedulable)

	require.NoError(t, rollout.Uncordon(t.Context(), api, "node-1"))
	n, err = api.CoreV1().Nodes().Get(t.Context(), "node-1", metav1.GetOptions{})
	require.NoError(t, err)
	assert.False(t, n.Spec.Unschedulable)
}

func TestDrainNamesWhatIsLeft(t *testing.T) {
	t.Parallel()

	api, _ := withEvictions(1<<30, pod("db", nil))

	err := patient(20*time.Millisecond).Empty(t.Context(), api, "node-1", func(string) {})

	assert.EqualError(t, err, "draining node node-1: after 20ms these pods are left: apps/db\n"+
		"  look at: their disruption budgets (kubectl get pdb -A); lifecycle.drainPolicy force goes on without them")
}

func TestDrainWithForceGoesOn(t *testing.T) {
	t.Parallel()

	api, _ := withEvictions(1<<30, pod("db", nil))
	d := patient(20 * time.Millisecond)
	d.Force = true
	var lines []string

	require.NoError(t, d.Empty(t.Context(), api, "node-1", func(l string) { lines = append(lines, l) }))

	assert.Equal(t, "draining node-1: going on after 20ms with apps/db left", lines[len(lines)-1])
}

func TestDrainOfANodeThatKubernetesDoesNotKnow(t *testing.T) {
	t.Parallel()

	api, _ := withEvictions(0)

	require.NoError(t, patient(time.Minute).Empty(t.Context(), api, "gone", func(string) {}))
	require.NoError(t, rollout.Uncordon(t.Context(), api, "gone"))
}

// A pod that no controller recreates comes back with a node that reboots, and is lost with one that leaves.
func TestDrainOfPodsWithoutAController(t *testing.T) {
	t.Parallel()

	alone := func(p *corev1.Pod) { p.OwnerReferences = nil }
	api, evicted := withEvictions(0, pod("web", nil), pod("alone", alone))
	d := patient(time.Minute)
	var lines []string
	report := func(l string) { lines = append(lines, l) }

	d.Removes = true
	require.EqualError(t, d.Empty(t.Context(), api, "node-1", report), "draining node node-1: no controller recreates these pods, "+
		"which would be lost with the node: apps/alone\n  delete them, or evict them too with lifecycle.drainPolicy force")
	assert.Empty(t, evicted())
	n, err := api.CoreV1().Nodes().Get(t.Context(), "node-1", metav1.GetOptions{})
	require.NoError(t, err)
	assert.False(t, n.Spec.Unschedulable, "nothing was done")

	d.Removes = false
	require.NoError(t, d.Empty(t.Context(), api, "node-1", report))
	assert.Equal(t, []string{"web"}, evicted())
	assert.Equal(t, "draining node-1: apps/alone stay, since no controller would recreate them; they restart with the node", lines[0])

	d.Removes, d.Force = true, true
	require.NoError(t, d.Empty(t.Context(), api, "node-1", report))
	assert.Equal(t, []string{"web", "alone"}, evicted())
}

// Nobody ends the pods of a node whose kubelet is gone; waiting for them would keep it from being repaired.
func TestDrainOfANodeWhoseKubeletIsSilent(t *testing.T) {
	t.Parallel()

	api, evicted := withEvictions(0, pod("web", nil))
	n, err := api.CoreV1().Nodes().Get(t.Context(), "node-1", metav1.GetOptions{})
	require.NoError(t, err)
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	_, err = api.CoreV1().Nodes().UpdateStatus(t.Context(), n, metav1.UpdateOptions{})
	require.NoError(t, err)

	require.NoError(t, patient(time.Minute).Empty(t.Context(), api, "node-1", func(string) {}))
	assert.Empty(t, evicted())
}
