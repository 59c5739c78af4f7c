// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/talos-proxmox/talos-proxmox/internal/versions"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/health"
)

// upgradeComponent brings one component on one node to the wanted version and waits until it is ready.
func (u KubernetesUpgrade) upgradeComponent(
	ctx context.Context, api cluster.Talos, m cluster.Member, component cluster.Component, wanted versions.Kubernetes,
) error {
	image, next, err := u.images(ctx, api, m, component, wanted)
	if err != nil {
		return fmt.Errorf("node %s: %s: %w", m, component, err)
	}
	if next == "" {
		u.Report(fmt.Sprintf("%s keeps %s %s, whose tag is no version", m.Name, component, image))

		return nil
	}
	runs := u.runsImage(m, component, next, wanted)
	if image == next && u.callOnce(ctx, runs) == nil {
		u.Report(fmt.Sprintf("%s runs %s %s already", m.Name, component, wanted))

		return nil
	}

	turn, cancel := context.WithTimeout(ctx, u.turnTimeout())
	defer cancel()
	if err := u.Gate.Enter(turn, m, u.healthChecker().Before(m)); err != nil {
		return fmt.Errorf("node %s: %s: %w", m, component, err)
	}
	if err := u.replaceImage(ctx, api, m, component, image, next, runs); err != nil {
		err = fmt.Errorf("node %s: %s: %w", m, component, err)
		u.Gate.Fail(m, err)

		return err
	}
	if err := u.Gate.Leave(ctx, m, u.healthChecker().After()); err != nil {
		return fmt.Errorf("node %s: %s: %w", m, component, err)
	}
	u.Report(fmt.Sprintf("%s runs %s %s", m.Name, component, wanted))

	return nil
}

// replaceImage sets the next image and waits until the node runs it.
func (u KubernetesUpgrade) replaceImage(
	ctx context.Context, api cluster.Talos, m cluster.Member, component cluster.Component, image, next string,
	runs func(context.Context) error,
) error {
	if image != next {
		u.Report(fmt.Sprintf("%s: %s goes from %s to %s", m.Name, component, image, next))
		if err := u.setImage(ctx, api, m, component, next); err != nil {
			return err
		}
	}
	hint := fmt.Sprintf("kubectl -n %s describe pod %s-%s", health.SystemNamespace, component, m.Hostname)
	if component == cluster.Kubelet {
		hint = fmt.Sprintf("talosctl -n %s logs kubelet", m.Address)
	}

	return u.waitFor(ctx, "it does not run "+next, hint, runs)
}

// setImage changes the image in the node's configuration, after a snapshot of etcd.
func (u KubernetesUpgrade) setImage(
	ctx context.Context, api cluster.Talos, m cluster.Member, component cluster.Component, image string,
) error {
	was := "unknown"
	if runs, ok := u.kubeletVersion(ctx, api, m); ok {
		was = runs.String()
	}
	if err := u.Snapshots.Take(ctx, "kubernetes-"+was, u.Report); err != nil {
		return err
	}
	calling, cancel := context.WithTimeout(ctx, u.Poll.Call)
	defer cancel()

	return api.SetImage(calling, m.Address, component, image)
}

// kubeletVersion returns the Kubernetes version of the kubelet in a node's configuration.
func (u KubernetesUpgrade) kubeletVersion(ctx context.Context, api cluster.Talos, m cluster.Member) (versions.Kubernetes, bool) {
	calling, cancel := context.WithTimeout(ctx, u.Poll.Call)
	defer cancel()
	image, err := api.Image(calling, m.Address, cluster.Kubelet)
	if err != nil {
		return versions.Kubernetes{}, false
	}

	return taggedVersion(image)
}

// images returns a component's image on a node and the next one; that is empty when the image's tag is no
// version.
func (u KubernetesUpgrade) images(
	ctx context.Context, api cluster.Talos, m cluster.Member, component cluster.Component, wanted versions.Kubernetes,
) (image, next string, err error) {
	calling, cancel := context.WithTimeout(ctx, u.Poll.Call)
	defer cancel()
	if image, err = api.Image(calling, m.Address, component); err != nil {
		return "", "", err
	}
	next, _ = retag(image, wanted)

	return image, next, nil
}

// runsImage returns a check that passes when the node runs the component's image and it is ready.
func (u KubernetesUpgrade) runsImage(
	m cluster.Member, component cluster.Component, image string, wanted versions.Kubernetes,
) func(context.Context) error {
	return func(ctx context.Context) error {
		api, err := u.Access.Kubernetes(ctx)
		if err != nil {
			return err
		}
		if component == cluster.Kubelet {
			return u.checkKubeletRuns(ctx, api, m, wanted)
		}

		return checkPodRuns(ctx, api, string(component)+"-"+m.Hostname, string(component), image)
	}
}

// checkPodRuns returns nil when a static pod runs the image and is ready.
func checkPodRuns(ctx context.Context, api kubernetes.Interface, name, container, image string) error {
	pod, err := api.CoreV1().Pods(health.SystemNamespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("asking for pod %s: %w", name, err)
	}
	i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == container })
	switch {
	case i < 0:
		return fmt.Errorf("pod %s has no container %s", name, container)
	case pod.Spec.Containers[i].Image != image:
		return fmt.Errorf("pod %s still has %s", name, pod.Spec.Containers[i].Image)
	case !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}):
		return fmt.Errorf("pod %s is not ready", name)
	default:
		return nil
	}
}

// checkKubeletRuns returns nil when the node's kubelet has the wanted version and the node is ready.
func (u KubernetesUpgrade) checkKubeletRuns(
	ctx context.Context, api kubernetes.Interface, m cluster.Member, wanted versions.Kubernetes,
) error {
	n, err := api.CoreV1().Nodes().Get(ctx, m.Hostname, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("asking for node %s: %w", m.Hostname, err)
	}
	if v := n.Status.NodeInfo.KubeletVersion; v != wanted.String() {
		return fmt.Errorf("the node still has kubelet %s", v)
	}
	if u.Cluster.SkipKubernetes {
		return nil
	}

	return health.NodeReady(*n)
}

// upgradeKubeProxy brings kube-proxy to the wanted version: in the configurations, from which Talos generates
// it, and then its DaemonSet, which Talos never updates.
func (u KubernetesUpgrade) upgradeKubeProxy(ctx context.Context, api cluster.Talos, wanted versions.Kubernetes) error {
	if !u.Cluster.KubeProxy {
		return nil
	}
	image := ""
	for _, m := range u.Cluster.ControlPlanes() {
		now, next, err := u.images(ctx, api, m, cluster.KubeProxy, wanted)
		if err == nil && next != "" && now != next {
			err = u.setImage(ctx, api, m, cluster.KubeProxy, next)
		}
		if err != nil {
			return fmt.Errorf("node %s: %s: %w", m, cluster.KubeProxy, err)
		}
		image = next
	}
	if image == "" {
		u.Report("kube-proxy keeps its image, whose tag is no version")

		return nil
	}
	u.Report("kube-proxy goes to " + image)

	return u.waitFor(ctx, "kube-proxy does not run "+image+" on every node",
		"kubectl -n kube-system describe daemonset kube-proxy",
		func(ctx context.Context) error { return u.rollKubeProxy(ctx, image) })
}

// rollKubeProxy sets the DaemonSet's image and returns nil when every pod has it.
func (u KubernetesUpgrade) rollKubeProxy(ctx context.Context, image string) error {
	api, err := u.Access.Kubernetes(ctx)
	if err != nil {
		return err
	}
	name := string(cluster.KubeProxy)
	d, err := api.AppsV1().DaemonSets(health.SystemNamespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("asking for daemonset %s: %w", name, err)
	}
	i := slices.IndexFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return c.Name == name })
	if i < 0 || d.Spec.Template.Spec.Containers[i].Image != image {
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": name, "image": image}},
		}}}})
		if err != nil {
			return fmt.Errorf("changing daemonset %s: %w", name, err)
		}
		d, err = api.AppsV1().DaemonSets(health.SystemNamespace).Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("changing daemonset %s: %w", name, err)
		}
	}
	if u.Cluster.SkipKubernetes {
		return nil
	}
	if d.Status.UpdatedNumberScheduled < d.Status.DesiredNumberScheduled {
		return fmt.Errorf("%d of %d pods have the new image", d.Status.UpdatedNumberScheduled, d.Status.DesiredNumberScheduled)
	}

	return health.DaemonSetReady(d, len(u.Cluster.Members), 0)
}

// callOnce runs a check once.
func (u KubernetesUpgrade) callOnce(ctx context.Context, check func(context.Context) error) error {
	calling, cancel := context.WithTimeout(ctx, u.Poll.Call)
	defer cancel()

	return check(calling)
}

// waitFor polls check until it returns nil. An API server that restarts does not answer for a while, so an
// error is a reason to try again.
func (u KubernetesUpgrade) waitFor(ctx context.Context, lacking, hint string, check func(context.Context) error) error {
	waiting, cancel := context.WithTimeout(ctx, u.Poll.Timeout)
	defer cancel()

	last := errors.New("not checked yet")
	err := cluster.Poll(waiting, u.Poll.Interval, func(ctx context.Context) (bool, error) {
		err := u.callOnce(ctx, check)
		// What a look says whose time ran out tells nothing.
		if err != nil && ctx.Err() == nil {
			last = err
		}

		return err == nil, nil
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("%s after %s: %w\n  look at: %s; then run `pulumi up` again, it goes on here",
			lacking, u.Poll.Timeout, last, hint)
	}

	return err
}

// flavours lists the suffixes of Talos's kubelet images.
var flavours = []string{"-slim", "-fat"}

// splitImage splits an image into repository, version and flavour. It drops a digest, since that stands for
// one version.
func splitImage(image string) (repository string, version versions.Kubernetes, flavour string, ok bool) {
	image, _, _ = strings.Cut(image, "@")
	at := strings.LastIndex(image, ":")
	if at < 0 || strings.Contains(image[at:], "/") {
		return "", versions.Kubernetes{}, "", false
	}
	tag := image[at+1:]
	for _, f := range flavours {
		if cut, found := strings.CutSuffix(tag, f); found {
			tag, flavour = cut, f
		}
	}
	version, err := versions.ParseKubernetes(tag)

	return image[:at], version, flavour, err == nil && strings.HasPrefix(tag, "v")
}

// retag returns the image of another version; false when its tag is no version.
func retag(image string, to versions.Kubernetes) (string, bool) {
	repository, from, flavour, ok := splitImage(image)
	if !ok {
		return "", false
	}
	if from.Compare(to) == 0 {
		return image, true
	}

	return repository + ":" + to.String() + flavour, true
}

// taggedVersion returns the version in an image's tag.
func taggedVersion(image string) (versions.Kubernetes, bool) {
	_, version, _, ok := splitImage(image)

	return version, ok
}
