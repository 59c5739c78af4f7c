// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package operations_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talos-proxmox/talos-proxmox/internal/operations"
)

// staticPods are the components that only control planes run.
var staticPods = []operations.Component{operations.APIServer, operations.ControllerManager, operations.Scheduler}

// imageOf is a component's image in tests.
func imageOf(component operations.Component, version string) string {
	return "registry.test/" + string(component) + ":" + version
}

// withKubernetes is a healthy cluster that runs a version of Kubernetes and does what its nodes'
// configurations say.
func withKubernetes(t *testing.T, d operations.Cluster, version string) *cluster {
	t.Helper()
	c := healthy(d)
	pods := c.kubernetes.CoreV1().Pods("kube-system")
	hosts := map[string]string{}
	for _, m := range d.Members {
		hosts[m.Address] = m.Hostname
		images := map[operations.Component]string{operations.Kubelet: imageOf(operations.Kubelet, version) + "-slim"}
		if m.ControlPlane {
			images[operations.KubeProxy] = imageOf(operations.KubeProxy, version)
			for _, component := range staticPods {
				images[component] = imageOf(component, version)
				_, err := pods.Create(t.Context(), staticPod(m, component, images[component]), metav1.CreateOptions{})
				require.NoError(t, err)
			}
		}
		c.nodes[m.Address].images = images
		setKubelet(t, c, m.Hostname, version)
	}
	d0, err := c.kubernetes.AppsV1().DaemonSets("kube-system").Get(t.Context(), "kube-proxy", metav1.GetOptions{})
	require.NoError(t, err)
	d0.Spec.Template.Spec.Containers = []corev1.Container{{Name: "kube-proxy", Image: imageOf(operations.KubeProxy, version)}}
	d0.Status.UpdatedNumberScheduled = d0.Status.DesiredNumberScheduled
	_, err = c.kubernetes.AppsV1().DaemonSets("kube-system").Update(t.Context(), d0, metav1.UpdateOptions{})
	require.NoError(t, err)

	c.run = func(address string, component operations.Component, image string) {
		host := hosts[address]
		switch component {
		case operations.Kubelet:
			setKubelet(t, c, host, image[len("registry.test/kubelet:"):len(image)-len("-slim")])
		case operations.KubeProxy: // Talos leaves what is there alone
		default:
			_, err := pods.Update(t.Context(), staticPod(operations.Member{Hostname: host}, component, image), metav1.UpdateOptions{})
			assert.NoError(t, err)
		}
	}
	return c
}

func staticPod(m operations.Member, component operations.Component, image string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: string(component) + "-" + m.Hostname},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: string(component), Image: image}}},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

func setKubelet(t *testing.T, c *cluster, host, version string) {
	t.Helper()
	nodes := c.kubernetes.CoreV1().Nodes()
	n, err := nodes.Get(t.Context(), host, metav1.GetOptions{})
	require.NoError(t, err)
	n.Status.NodeInfo.KubeletVersion = version
	_, err = nodes.Update(t.Context(), n, metav1.UpdateOptions{})
	require.NoError(t, err)
}

// upgradingKubernetes is an upgrade in a fake cluster, and the lines that it reports.
func upgradingKubernetes(c *cluster, d operations.Cluster) (operations.KubernetesUpgrade, func() []string) {
	var mu sync.Mutex
	var lines []string

	return operations.KubernetesUpgrade{
			Access: c, Cluster: d, Gate: operations.NewGate(1),
			Patience: operations.Patience{Timeout: 400 * time.Millisecond, Interval: time.Millisecond, Call: time.Second},
			Report: func(line string) {
				mu.Lock()
				defer mu.Unlock()
				lines = append(lines, line)
			},
		}, func() []string {
			mu.Lock()
			defer mu.Unlock()

			return lines
		}
}

func TestKubernetesUpgradeFollowsTalosOrder(t *testing.T) {
	t.Parallel()

	d := described(2, 1)
	c := withKubernetes(t, d, "v1.34.1")
	u, lines := upgradingKubernetes(c, d)

	require.NoError(t, u.Run(t.Context(), "v1.35.0"))

	want := []string{
		"10.0.0.1 registry.test/kube-apiserver:v1.35.0", "10.0.0.2 registry.test/kube-apiserver:v1.35.0",
		"10.0.0.1 registry.test/kube-controller-manager:v1.35.0", "10.0.0.2 registry.test/kube-controller-manager:v1.35.0",
		"10.0.0.1 registry.test/kube-scheduler:v1.35.0", "10.0.0.2 registry.test/kube-scheduler:v1.35.0",
		"10.0.0.1 registry.test/kube-proxy:v1.35.0", "10.0.0.2 registry.test/kube-proxy:v1.35.0",
		"10.0.0.1 registry.test/kubelet:v1.35.0-slim", "10.0.0.2 registry.test/kubelet:v1.35.0-slim",
		"10.0.0.3 registry.test/kubelet:v1.35.0-slim",
	}
	assert.Equal(t, want, c.set)
	assert.Len(t, c.pulled, 9, "three control plane images on two nodes, a kubelet on three")
	proxy, err := c.kubernetes.AppsV1().DaemonSets("kube-system").Get(t.Context(), "kube-proxy", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "registry.test/kube-proxy:v1.35.0", proxy.Spec.Template.Spec.Containers[0].Image)
	assert.Contains(t, lines(), "node-1: kube-apiserver goes from registry.test/kube-apiserver:v1.34.1 to registry.test/kube-apiserver:v1.35.0")
	assert.Contains(t, lines(), "node-3 runs kubelet v1.35.0")

	before := len(c.set)
	require.NoError(t, u.Run(t.Context(), "v1.35.0"))
	assert.Len(t, c.set, before, "what is right is left alone")
}

func TestKubernetesUpgradeGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()

	d := described(3, 0)
	c := withKubernetes(t, d, "v1.34.1")
	works := c.run
	c.run = func(address string, component operations.Component, image string) {
		if address != "10.0.0.2" || component != operations.ControllerManager {
			works(address, component, image)
		}
	}
	u, _ := upgradingKubernetes(c, d)

	err := u.Run(t.Context(), "v1.35.0")

	require.EqualError(t, err, `upgrading Kubernetes of cluster "test" to v1.35.0: node node-2 (10.0.0.2): kube-controller-manager: `+
		"it does not run registry.test/kube-controller-manager:v1.35.0 after 400ms: "+
		"pod kube-controller-manager-node-2 still has registry.test/kube-controller-manager:v1.34.1\n"+
		"  look at: kubectl -n kube-system describe pod kube-controller-manager-node-2; then run `pulumi up` again, it goes on here")
	assert.Len(t, c.set, 5, "nothing comes after the first failure")
	var closed *operations.Closed
	require.ErrorAs(t, u.Gate.Enter(t.Context(), d.Members[0], nil), &closed, "nobody else gets a turn in this run")

	works("10.0.0.2", operations.ControllerManager, imageOf(operations.ControllerManager, "v1.35.0"))
	c.run = works
	again, _ := upgradingKubernetes(c, d)
	require.NoError(t, again.Run(t.Context(), "v1.35.0"))
	assert.Equal(t, []string{"10.0.0.3 registry.test/kube-controller-manager:v1.35.0", "10.0.0.1 registry.test/kube-scheduler:v1.35.0"},
		c.set[5:7])
}

func TestKubernetesUpgradeRefusals(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		to      string
		prepare func(*cluster)
		want    string
	}{
		"a skipped minor version": {
			"v1.35.0", func(c *cluster) {
				c.nodes[address(1)].images[operations.APIServer] = imageOf(operations.APIServer, "v1.33.4")
			},
			"node node-1 (10.0.0.1): Kubernetes v1.33.4 cannot skip to v1.35.0: go to v1.34 first\n  nothing was changed",
		},
		"back to another minor version": {
			"v1.33.4", func(*cluster) {},
			"node node-1 (10.0.0.1): Kubernetes v1.34.1 cannot go back to v1.33.4: only to another patch of v1.34\n  nothing was changed",
		},
		"a kubelet that is too old": {
			"v1.35.0", func(c *cluster) {
				c.nodes[address(3)].images[operations.Kubelet] = imageOf(operations.Kubelet, "v1.31.0")
			},
			"node node-3 (10.0.0.3): kubelet v1.31.0 is more than three minor versions older than API server v1.35.0\n  nothing was changed",
		},
		"a Talos that is too old": {
			"v1.35.0", func(c *cluster) { c.nodes[address(2)].version = "v1.11.5" },
			"node node-2 (10.0.0.2): Talos v1.11.5 supports Kubernetes v1.29 to v1.34, not v1.35.0: " +
				"edit talos.version first, and kubernetes.version in a run after that\n  nothing was changed",
		},
		"an image that does not exist": {
			"v1.34.99", func(c *cluster) { c.noImage = errors.New("pulling it: not found") },
			"node node-1 (10.0.0.1): pulling it: not found\n  nothing runs a new image yet; " +
				"when the version is right and the registry answers, run `pulumi up` again",
		},
		"a cluster that is not well": {
			"v1.35.0", func(c *cluster) { c.nodes[address(3)].stage = "booting" },
			"node node-1 (10.0.0.1): kube-apiserver: before node node-1 (10.0.0.1) goes down: cluster \"test\" is not healthy after 0s: " +
				"check \"every node has finished booting\" fails on node node-3 (10.0.0.3): the machine is in stage \"booting\"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			d := described(2, 1)
			c := withKubernetes(t, d, "v1.34.1")
			test.prepare(c)
			u, _ := upgradingKubernetes(c, d)

			err := u.Run(t.Context(), test.to)

			require.ErrorContains(t, err, `upgrading Kubernetes of cluster "test" to `+test.to+": "+test.want)
			assert.Empty(t, c.set, "nothing was changed")
		})
	}
}

func TestKubernetesUpgradeLeavesWhoJoinsLaterAlone(t *testing.T) {
	t.Parallel()

	d := described(1, 1)
	c := withKubernetes(t, d, "v1.34.1")
	require.NoError(t, c.kubernetes.CoreV1().Nodes().Delete(t.Context(), "node-2", metav1.DeleteOptions{}))
	c.nodes[address(2)].silent = true
	u, _ := upgradingKubernetes(c, d)
	u.Cluster.KubeProxy = false

	require.NoError(t, u.Run(t.Context(), "v1.34.2"))

	assert.Len(t, c.set, 4, "three static pods and a kubelet")
}

func TestKubernetesUpgradeOfAClusterThatNeverCameUp(t *testing.T) {
	t.Parallel()

	d := described(1, 0)
	c := withKubernetes(t, d, "v1.34.99")
	c.nodes[address(1)].pods = nil
	u, lines := upgradingKubernetes(c, d)

	require.NoError(t, u.Run(t.Context(), "v1.34.1"))

	assert.Empty(t, c.set)
	assert.Equal(t, []string{"no API server is up: the configurations are applied as they are"}, lines())
}

func TestKubernetesUpgradeKeepsAnImageOfSomebodysOwn(t *testing.T) {
	t.Parallel()

	d := described(1, 0)
	c := withKubernetes(t, d, "v1.34.1")
	c.nodes[address(1)].images[operations.Scheduler] = "registry.test/kube-scheduler:ours"
	u, lines := upgradingKubernetes(c, d)

	require.NoError(t, u.Run(t.Context(), "v1.34.2"))

	assert.Equal(t, "registry.test/kube-scheduler:ours", c.nodes[address(1)].images[operations.Scheduler])
	assert.Contains(t, lines(), "node-1 keeps kube-scheduler registry.test/kube-scheduler:ours, whose tag is no version")
}
