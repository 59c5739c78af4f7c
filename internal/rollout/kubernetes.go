// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talos-proxmox/talos-proxmox/internal/versions"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/health"
)

// KubernetesUpgrade brings a cluster to another version of Kubernetes, in place.
type KubernetesUpgrade struct {
	// Access opens the cluster.
	Access cluster.Access
	// Cluster is what is supposed to run. Members that Kubernetes does not know are left out: they join
	// later, with the new version.
	Cluster cluster.Cluster
	// Gate lets one node at a time restart what it runs of Kubernetes.
	Gate *Gate
	// Snapshots are taken of etcd before; nil for none.
	Snapshots *Snapshots
	// Sync brings the objects that Talos creates at bootstrap in line with its manifests; nil for none.
	Sync func(context.Context) error
	// Metrics are an API server's, in Prometheus's text format; nil where nobody can ask.
	Metrics func(context.Context) ([]byte, error)
	// Poll bounds each wait for one component on one node, and each look at health.
	Poll cluster.PollOptions
	// Report gets a line for each step.
	Report func(string)
	// Bootstrapped and Force are those of [HealthChecker].
	Bootstrapped func(context.Context) (bool, error)
	Force        []string
}

// staticComponents lists the control plane's static pods in the order in which they are upgraded.
var staticComponents = []cluster.Component{cluster.APIServer, cluster.ControllerManager, cluster.Scheduler}

// Run upgrades in Talos's own order: it pulls every image first, then changes the API servers, the controller
// managers, the schedulers, kube-proxy and the kubelets, node by node, control planes first, and at last the objects
// that Talos creates at bootstrap and never changes by itself. Each node waits
// for its turn and a healthy cluster before, and must run the new version and be healthy after. What is right
// already is skipped, so that an interrupted upgrade continues by running it again. Skipped minor versions,
// downgrades to another minor version, and versions that Talos on a node does not support are refused before
// anything changes. The error names the node, the step, and what to do.
func (u KubernetesUpgrade) Run(ctx context.Context, to string) error {
	wanted, err := versions.ParseKubernetes(to)
	if err != nil {
		return err
	}
	if err := u.run(ctx, wanted); err != nil {
		return fmt.Errorf("upgrading Kubernetes of cluster %q to %s: %w", u.Cluster.Name, wanted, err)
	}

	return nil
}

func (u KubernetesUpgrade) run(ctx context.Context, wanted versions.Kubernetes) error {
	api, err := u.Access.Talos(ctx)
	if err != nil {
		return err
	}
	if idle, err := u.idle(ctx, api, wanted); err != nil || idle {
		if err == nil {
			u.Report("no API server is up: the configurations are applied as they are")
		}

		return err
	}
	if u.Cluster.Members, err = u.registeredMembers(ctx); err != nil {
		return err
	}
	if err := u.checkSkew(ctx, api, wanted); err != nil {
		return err
	}
	u.warnOfRemoved(ctx, wanted)
	if err := u.prePullImages(ctx, api, wanted); err != nil {
		return err
	}
	for _, component := range staticComponents {
		for _, m := range u.Cluster.ControlPlanes() {
			if err := u.upgradeComponent(ctx, api, m, component, wanted); err != nil {
				return err
			}
		}
	}
	if err := u.upgradeKubeProxy(ctx, api, wanted); err != nil {
		return err
	}
	for _, m := range u.planesFirst() {
		if err := u.upgradeComponent(ctx, api, m, cluster.Kubelet, wanted); err != nil {
			return err
		}
	}
	if u.Sync == nil {
		return nil
	}

	return u.Sync(ctx)
}

// idle reports whether there is nothing to keep running: no API server is ready, and none is on its way to
// the wanted version, as after an interrupted upgrade. A control plane that does not answer is no such proof:
// it is asked until it answers or the time is up, unless the cluster was never bootstrapped or the node was
// given up.
func (u KubernetesUpgrade) idle(ctx context.Context, api cluster.Talos, wanted versions.Kubernetes) (bool, error) {
	waiting, cancel := context.WithTimeout(ctx, u.Poll.Timeout)
	defer cancel()

	idle, asked := false, false
	var last error
	err := cluster.Poll(waiting, u.Poll.Interval, func(ctx context.Context) (bool, error) {
		var errs []error
		for _, m := range u.Cluster.ControlPlanes() {
			runs, err := u.runsAPIServer(ctx, api, m, wanted)
			if runs {
				return true, nil
			}
			if err != nil && !slices.Contains(u.Force, m.Name) {
				errs = append(errs, fmt.Errorf("%s: %w", m, err))
			}
		}
		if idle = len(errs) == 0; idle {
			return true, nil
		}
		cluster.Remember(ctx, &last, errors.Join(errs...))
		if !asked {
			asked = true
			if idle = !u.healthChecker().wasBootstrapped(ctx); idle {
				return true, nil
			}
			u.Report(fmt.Sprintf("waiting for the control planes to say what they run: %v", last))
		}

		return false, nil
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return false, fmt.Errorf("no control plane said within %s whether its API server runs: %w\n  nothing was changed; "+
			"look at: is port 50000 of the control planes reachable from here?", u.Poll.Timeout, last)
	}

	return idle, err
}

// runsAPIServer reports whether a control plane's API server is ready, or on its way to the wanted version. A
// machine that waits for its first configuration runs none.
func (u KubernetesUpgrade) runsAPIServer(
	ctx context.Context, api cluster.Talos, m cluster.Member, wanted versions.Kubernetes,
) (bool, error) {
	calling, cancel := context.WithTimeout(ctx, u.Poll.Call)
	defer cancel()
	pods, err := api.StaticPods(calling, m.Address)
	image := ""
	if err == nil {
		image, err = api.Image(calling, m.Address, cluster.APIServer)
	}
	if err != nil {
		asking, cancelAsking := context.WithTimeout(ctx, u.Poll.Call)
		defer cancelAsking()
		if api.Unconfigured(asking, m.Address) {
			return false, nil
		}

		return false, err
	}
	ready := slices.ContainsFunc(pods, func(p cluster.StaticPod) bool {
		return p.Ready && strings.HasPrefix(p.ID, health.SystemNamespace+"/"+string(cluster.APIServer)+"-")
	})
	runs, ok := taggedVersion(image)

	return ready || ok && runs.Compare(wanted) == 0, nil
}

// registeredMembers returns the members that Kubernetes has. A single control plane may be restarting its API
// server just now, so the question is repeated.
func (u KubernetesUpgrade) registeredMembers(ctx context.Context) ([]cluster.Member, error) {
	var found []cluster.Member
	err := u.waitFor(ctx, "Kubernetes did not say which nodes it has", "the cluster's endpoint, port 6443",
		func(ctx context.Context) error {
			api, err := u.Access.Kubernetes(ctx)
			if err != nil {
				return err
			}
			list, err := api.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			if err != nil {
				return fmt.Errorf("asking Kubernetes for its nodes: %w", err)
			}
			names := make(map[string]bool, len(list.Items))
			for _, n := range list.Items {
				names[n.Name] = true
			}
			found = found[:0]
			for _, m := range u.Cluster.Members {
				if names[m.Hostname] {
					found = append(found, m)
				}
			}

			return nil
		})

	return found, err
}

// checkSkew refuses what Kubernetes or Talos does not support, before anything changes.
func (u KubernetesUpgrade) checkSkew(ctx context.Context, api cluster.Talos, wanted versions.Kubernetes) error {
	for _, m := range u.Cluster.Members {
		if err := u.checkNodeSkew(ctx, api, m, wanted); err != nil {
			return fmt.Errorf("node %s: %w\n  nothing was changed", m, err)
		}
	}

	return nil
}

func (u KubernetesUpgrade) checkNodeSkew(ctx context.Context, api cluster.Talos, m cluster.Member, wanted versions.Kubernetes) error {
	calling, cancel := context.WithTimeout(ctx, u.Poll.Call)
	defer cancel()
	text, err := api.Version(calling, m.Address)
	if err != nil {
		return fmt.Errorf("asking what it runs: %w", err)
	}
	// A version of Talos that cannot be read is somebody's own build.
	if talos, err := versions.ParseTalos(text); err == nil {
		if err := wanted.FitsTalos(talos); err != nil {
			return fmt.Errorf("%w: edit talos.version first, and kubernetes.version in a run after that", err)
		}
	}
	kubelet, err := api.Image(calling, m.Address, cluster.Kubelet)
	if err != nil {
		return err
	}
	if runs, ok := taggedVersion(kubelet); ok && runs.Compare(wanted) < 0 {
		if err := versions.KubeletSkew(wanted, runs); err != nil {
			return err
		}
	}
	if !m.ControlPlane {
		return nil
	}
	server, err := api.Image(calling, m.Address, cluster.APIServer)
	if err != nil {
		return err
	}
	if runs, ok := taggedVersion(server); ok {
		return versions.KubernetesStep(runs, wanted)
	}

	return nil
}

// prePullImages pulls on every node what it is going to run, so that a version that does not exist, or an
// unreachable registry, is found before anything changes.
func (u KubernetesUpgrade) prePullImages(ctx context.Context, api cluster.Talos, wanted versions.Kubernetes) error {
	for _, m := range u.planesFirst() {
		components := []cluster.Component{cluster.Kubelet}
		if m.ControlPlane {
			components = append(components, staticComponents...)
		}
		for _, component := range components {
			if err := u.prePullImage(ctx, api, m, component, wanted); err != nil {
				return fmt.Errorf("node %s: %w\n  nothing runs a new image yet; when the version is right and "+
					"the registry answers, run `pulumi up` again", m, err)
			}
		}
	}

	return nil
}

func (u KubernetesUpgrade) prePullImage(
	ctx context.Context, api cluster.Talos, m cluster.Member, component cluster.Component, wanted versions.Kubernetes,
) error {
	pulling, cancel := context.WithTimeout(ctx, u.Poll.Timeout)
	defer cancel()
	image, err := api.Image(pulling, m.Address, component)
	if err != nil {
		return err
	}
	next, ok := retag(image, wanted)
	if !ok || next == image {
		return nil
	}
	u.Report(fmt.Sprintf("%s pulls %s", m.Name, next))

	return api.Pull(pulling, m.Address, component, next)
}

// planesFirst returns all members, control planes before workers.
func (u KubernetesUpgrade) planesFirst() []cluster.Member {
	list := u.Cluster.ControlPlanes()
	for _, m := range u.Cluster.Members {
		if !m.ControlPlane {
			list = append(list, m)
		}
	}

	return list
}

// healthChecker returns the checks to run before and after each step.
func (u KubernetesUpgrade) healthChecker() HealthChecker {
	return HealthChecker{
		Access: u.Access, Cluster: u.Cluster, Poll: u.Poll, Report: u.Report, Bootstrapped: u.Bootstrapped, Force: u.Force,
	}
}

// turnTimeout bounds the wait for a place in the gate: every other node may take its whole time before.
func (u KubernetesUpgrade) turnTimeout() time.Duration {
	return time.Duration(len(u.Cluster.Members)+1) * 2 * u.Poll.Timeout
}
