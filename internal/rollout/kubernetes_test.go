// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster/clustertest"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
)

// staticPods are the components that only control planes run.
var staticPods = []cluster.Component{cluster.APIServer, cluster.ControllerManager, cluster.Scheduler}

// imageOf returns a component's image in tests.
func imageOf(component cluster.Component, version string) string {
	return "registry.test/" + string(component) + ":" + version
}

// withKubernetes returns a healthy cluster that runs a version of Kubernetes and does what its nodes'
// configurations say.
func withKubernetes(t *testing.T, d cluster.Cluster, version string) *clustertest.Fake {
	t.Helper()
	c := clustertest.Healthy(d)
	pods := c.API.CoreV1().Pods("kube-system")
	hosts := map[string]string{}
	for _, m := range d.Members {
		hosts[m.Address] = m.Hostname
		images := map[cluster.Component]string{cluster.Kubelet: imageOf(cluster.Kubelet, version) + "-slim"}
		if m.ControlPlane {
			images[cluster.KubeProxy] = imageOf(cluster.KubeProxy, version)
			for _, component := range staticPods {
				images[component] = imageOf(component, version)
				_, err := pods.Create(t.Context(), staticPod(m, component, images[component]), metav1.CreateOptions{})
				require.NoError(t, err)
			}
		}
		c.Nodes[m.Address].Images = images
		setKubelet(t, c, m.Hostname, version)
	}
	d0, err := c.API.AppsV1().DaemonSets("kube-system").Get(t.Context(), "kube-proxy", metav1.GetOptions{})
	require.NoError(t, err)
	d0.Spec.Template.Spec.Containers = []corev1.Container{{Name: "kube-proxy", Image: imageOf(cluster.KubeProxy, version)}}
	d0.Status.UpdatedNumberScheduled = d0.Status.DesiredNumberScheduled
	_, err = c.API.AppsV1().DaemonSets("kube-system").Update(t.Context(), d0, metav1.UpdateOptions{})
	require.NoError(t, err)

	c.OnSetImage = func(address string, component cluster.Component, image string) {
		host := hosts[address]
		switch component {
		case cluster.Kubelet:
			setKubelet(t, c, host, image[len("registry.test/kubelet:"):len(image)-len("-slim")])
		case cluster.KubeProxy: // Talos leaves what is there alone
		default:
			_, err := pods.Update(t.Context(), staticPod(cluster.Member{Hostname: host}, component, image), metav1.UpdateOptions{})
			assert.NoError(t, err)
		}
	}
	return c
}

func staticPod(m cluster.Member, component cluster.Component, image string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: string(component) + "-" + m.Hostname},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: string(component), Image: image}}},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

func setKubelet(t *testing.T, c *clustertest.Fake, host, version string) {
	t.Helper()
	nodes := c.API.CoreV1().Nodes()
	n, err := nodes.Get(t.Context(), host, metav1.GetOptions{})
	require.NoError(t, err)
	n.Status.NodeInfo.KubeletVersion = version
	_, err = nodes.Update(t.Context(), n, metav1.UpdateOptions{})
	require.NoError(t, err)
}

// upgradingKubernetes returns an upgrade in a fake cluster, and the lines that it reports.
func upgradingKubernetes(c *clustertest.Fake, d cluster.Cluster) (rollout.KubernetesUpgrade, func() []string) {
	var mu sync.Mutex
	var lines []string

	return rollout.KubernetesUpgrade{
			Access: c, Cluster: d, Gate: rollout.NewGate(1),
			Poll: cluster.PollOptions{Timeout: 400 * time.Millisecond, Interval: time.Millisecond, Call: time.Second},
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

	d := clustertest.Describe(2, 1)
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
	assert.Equal(t, want, c.ImagesSet)
	assert.Len(t, c.Pulled, 9, "three control plane images on two nodes, a kubelet on three")
	proxy, err := c.API.AppsV1().DaemonSets("kube-system").Get(t.Context(), "kube-proxy", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "registry.test/kube-proxy:v1.35.0", proxy.Spec.Template.Spec.Containers[0].Image)
	assert.Contains(t, lines(), "node-1: kube-apiserver goes from registry.test/kube-apiserver:v1.34.1 to registry.test/kube-apiserver:v1.35.0")
	assert.Contains(t, lines(), "node-3 runs kubelet v1.35.0")

	before := len(c.ImagesSet)
	require.NoError(t, u.Run(t.Context(), "v1.35.0"))
	assert.Len(t, c.ImagesSet, before, "what is right is left alone")
}

func TestKubernetesUpgradeGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(3, 0)
	c := withKubernetes(t, d, "v1.34.1")
	works := c.OnSetImage
	c.OnSetImage = func(address string, component cluster.Component, image string) {
		if address != "10.0.0.2" || component != cluster.ControllerManager {
			works(address, component, image)
		}
	}
	u, _ := upgradingKubernetes(c, d)

	err := u.Run(t.Context(), "v1.35.0")

	require.EqualError(t, err, `upgrading Kubernetes of cluster "test" to v1.35.0: node node-2 (10.0.0.2): kube-controller-manager: `+
		"it does not run registry.test/kube-controller-manager:v1.35.0 after 400ms: "+
		"pod kube-controller-manager-node-2 still has registry.test/kube-controller-manager:v1.34.1\n"+
		"  look at: kubectl -n kube-system describe pod kube-controller-manager-node-2; then run `pulumi up` again, it goes on here")
	assert.Len(t, c.ImagesSet, 5, "nothing comes after the first failure")
	var closed *rollout.Closed
	require.ErrorAs(t, u.Gate.Enter(t.Context(), d.Members[0], nil), &closed, "nobody else gets a turn in this run")

	works("10.0.0.2", cluster.ControllerManager, imageOf(cluster.ControllerManager, "v1.35.0"))
	c.OnSetImage = works
	again, _ := upgradingKubernetes(c, d)
	require.NoError(t, again.Run(t.Context(), "v1.35.0"))
	assert.Equal(t, []string{"10.0.0.3 registry.test/kube-controller-manager:v1.35.0", "10.0.0.1 registry.test/kube-scheduler:v1.35.0"},
		c.ImagesSet[5:7])
}

func TestKubernetesUpgradeRefusals(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		to      string
		prepare func(*clustertest.Fake)
		want    string
	}{
		"a skipped minor version": {
			"v1.35.0", func(c *clustertest.Fake) {
				c.Nodes[clustertest.Address(1)].Images[cluster.APIServer] = imageOf(cluster.APIServer, "v1.33.4")
			},
			"node node-1 (10.0.0.1): Kubernetes v1.33.4 cannot skip to v1.35.0: go to v1.34 first\n  nothing was changed",
		},
		"back to another minor version": {
			"v1.33.4", func(*clustertest.Fake) {},
			"node node-1 (10.0.0.1): Kubernetes v1.34.1 cannot go back to v1.33.4: only to another patch of v1.34\n  nothing was changed",
		},
		"a kubelet that is too old": {
			"v1.35.0", func(c *clustertest.Fake) {
				c.Nodes[clustertest.Address(3)].Images[cluster.Kubelet] = imageOf(cluster.Kubelet, "v1.31.0")
			},
			"node node-3 (10.0.0.3): kubelet v1.31.0 is more than three minor versions older than API server v1.35.0\n  nothing was changed",
		},
		"a Talos that is too old": {
			"v1.35.0", func(c *clustertest.Fake) { c.Nodes[clustertest.Address(2)].Version = "v1.11.5" },
			"node node-2 (10.0.0.2): Talos v1.11.5 supports Kubernetes v1.29 to v1.34, not v1.35.0: " +
				"edit talos.version first, and kubernetes.version in a run after that\n  nothing was changed",
		},
		"an image that does not exist": {
			"v1.34.99", func(c *clustertest.Fake) { c.PullError = errors.New("pulling it: not found") },
			"node node-1 (10.0.0.1): pulling it: not found\n  nothing runs a new image yet; " +
				"when the version is right and the registry answers, run `pulumi up` again",
		},
		"a cluster that is not well": {
			"v1.35.0", func(c *clustertest.Fake) { c.Nodes[clustertest.Address(3)].Stage = "booting" },
			"node node-1 (10.0.0.1): kube-apiserver: before node node-1 (10.0.0.1) goes down: cluster \"test\" is not healthy after 0s: " +
				"check \"every node has finished booting\" fails on node node-3 (10.0.0.3): the machine is in stage \"booting\"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			d := clustertest.Describe(2, 1)
			c := withKubernetes(t, d, "v1.34.1")
			test.prepare(c)
			u, _ := upgradingKubernetes(c, d)

			err := u.Run(t.Context(), test.to)

			require.ErrorContains(t, err, `upgrading Kubernetes of cluster "test" to `+test.to+": "+test.want)
			assert.Empty(t, c.ImagesSet, "nothing was changed")
		})
	}
}

func TestKubernetesUpgradeLeavesWhoJoinsLaterAlone(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(1, 1)
	c := withKubernetes(t, d, "v1.34.1")
	require.NoError(t, c.API.CoreV1().Nodes().Delete(t.Context(), "node-2", metav1.DeleteOptions{}))
	c.Nodes[clustertest.Address(2)].Unreachable = true
	u, _ := upgradingKubernetes(c, d)
	u.Cluster.KubeProxy = false

	require.NoError(t, u.Run(t.Context(), "v1.34.2"))

	assert.Len(t, c.ImagesSet, 4, "three static pods and a kubelet")
}

func TestKubernetesUpgradeOfAClusterThatNeverCameUp(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(1, 0)
	c := withKubernetes(t, d, "v1.34.99")
	c.Nodes[clustertest.Address(1)].Pods = nil
	u, lines := upgradingKubernetes(c, d)

	require.NoError(t, u.Run(t.Context(), "v1.34.1"))

	assert.Empty(t, c.ImagesSet)
	assert.Equal(t, []string{"no API server is up: the configurations are applied as they are"}, lines())
}

func TestKubernetesUpgradeKeepsAnImageOfSomebodysOwn(t *testing.T) {
	t.Parallel()

	d := clustertest.Describe(1, 0)
	c := withKubernetes(t, d, "v1.34.1")
	c.Nodes[clustertest.Address(1)].Images[cluster.Scheduler] = "registry.test/kube-scheduler:ours"
	u, lines := upgradingKubernetes(c, d)

	require.NoError(t, u.Run(t.Context(), "v1.34.2"))

	assert.Equal(t, "registry.test/kube-scheduler:ours", c.Nodes[clustertest.Address(1)].Images[cluster.Scheduler])
	assert.Contains(t, lines(), "node-1 keeps kube-scheduler registry.test/kube-scheduler:ours, whose tag is no version")
}
