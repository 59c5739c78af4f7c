// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package health

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

// finding describes why a check fails.
type finding struct {
	node   string
	reason error
	hint   string
}

// healthCheck names one check and runs it.
type healthCheck struct {
	name string
	skip func(cluster.Cluster) bool
	run  func(context.Context, *checkRun) *finding
}

// checks lists the checks in the order in which a cluster comes up, so that the first failing one is the
// cause.
var checks = []healthCheck{
	{name: "the Talos API answers on every node", run: apiAnswers},
	{name: "every node has finished booting", run: nodesBooted},
	{name: "etcd is healthy on every control plane", run: serviceOnControlPlanes("etcd")},
	{name: "etcd has the control planes as members", run: etcdMembers},
	{name: "the kubelet is healthy on every node", run: kubelets},
	{name: "the Kubernetes API answers", run: kubernetesAnswers},
	{name: "every node is registered in Kubernetes", run: nodesRegistered},
	{name: "the control plane's static pods are ready", run: staticPods},
	{name: "every Kubernetes node is ready", skip: skipKubernetes, run: nodesReady},
	{name: "every Kubernetes node is schedulable", skip: skipKubernetes, run: nodesSchedulable},
	{
		name: "kube-proxy is ready",
		skip: func(c cluster.Cluster) bool { return c.SkipKubernetes || !c.KubeProxy },
		run:  kubeProxy,
	},
	{
		name: "CoreDNS is ready",
		skip: func(c cluster.Cluster) bool { return c.SkipKubernetes || !c.CoreDNS },
		run:  coreDNS,
	},
}

// schedulableChecks list what must hold before anything is installed in a cluster that is still coming up.
var schedulableChecks = []healthCheck{
	{name: "the Kubernetes API answers", run: kubernetesAnswers},
	{name: "a Kubernetes node takes pods", run: anyNodeTakesPods},
}

func skipKubernetes(c cluster.Cluster) bool { return c.SkipKubernetes }

// checkRun runs the checks once against a cluster.
type checkRun struct {
	access  cluster.Access
	cluster cluster.Cluster
	perCall time.Duration
}

// onEach asks all members at the same time and returns the finding about the first of them in order.
func (l *checkRun) onEach(
	ctx context.Context, members []cluster.Member, ask func(context.Context, cluster.Talos, cluster.Member) *finding,
) *finding {
	api, err := l.access.Talos(ctx)
	if err != nil {
		return &finding{reason: err}
	}

	found := make([]*finding, len(members))
	var asked sync.WaitGroup
	for i, m := range members {
		asked.Go(func() {
			calling, cancel := context.WithTimeout(ctx, l.perCall)
			defer cancel()
			if f := ask(calling, api, m); f != nil {
				f.node = cmp.Or(f.node, m.String())
				found[i] = f
			}
		})
	}
	asked.Wait()

	for _, f := range found {
		if f != nil {
			return f
		}
	}

	return nil
}

// inKubernetes calls ask with the Kubernetes API.
func (l *checkRun) inKubernetes(
	ctx context.Context, ask func(context.Context, kubernetes.Interface) *finding,
) *finding {
	calling, cancel := context.WithTimeout(ctx, l.perCall)
	defer cancel()

	api, err := l.access.Kubernetes(calling)
	if err != nil {
		return &finding{reason: err}
	}

	return ask(calling, api)
}

// UnreachableHint returns what to look at when a node does not answer.
func UnreachableHint(m cluster.Member) string {
	return fmt.Sprintf("the console of %s; is it powered on, is %s its address, is port 50000 reachable from here? "+
		"`pulumi up --refresh` starts a VM of the stack that is off", m.Name, m.Address)
}

func apiAnswers(ctx context.Context, l *checkRun) *finding {
	return l.onEach(ctx, l.cluster.ExpectedUp(l.cluster.Members), func(ctx context.Context, api cluster.Talos, m cluster.Member) *finding {
		if _, err := api.Version(ctx, m.Address); err != nil {
			return &finding{
				reason: err,
				hint:   UnreachableHint(m),
			}
		}

		return nil
	})
}

func nodesBooted(ctx context.Context, l *checkRun) *finding {
	return l.onEach(ctx, l.cluster.ExpectedUp(l.cluster.Members), func(ctx context.Context, api cluster.Talos, m cluster.Member) *finding {
		stage, unmet, err := api.Stage(ctx, m.Address)
		if err != nil {
			return &finding{reason: err, hint: "talosctl -n " + m.Address + " get machinestatus"}
		}
		if stage != "running" {
			reason := fmt.Errorf("the machine is in stage %q", stage)
			if len(unmet) > 0 {
				reason = fmt.Errorf("the machine is in stage %q: %s", stage, strings.Join(unmet, "; "))
			}

			return &finding{reason: reason, hint: "talosctl -n " + m.Address + " dmesg"}
		}

		return nil
	})
}

func kubelets(ctx context.Context, l *checkRun) *finding {
	return l.service(ctx, "kubelet", l.cluster.ExpectedUp(l.cluster.Members))
}

func serviceOnControlPlanes(id string) func(context.Context, *checkRun) *finding {
	return func(ctx context.Context, l *checkRun) *finding {
		return l.service(ctx, id, l.cluster.ExpectedUp(l.cluster.ControlPlanes()))
	}
}

// service checks that one of Talos's services runs and is healthy.
func (l *checkRun) service(ctx context.Context, id string, members []cluster.Member) *finding {
	return l.onEach(ctx, members, func(ctx context.Context, api cluster.Talos, m cluster.Member) *finding {
		services, err := api.Services(ctx, m.Address)
		if err == nil {
			err = serviceHealthy(services, id)
		}
		if err != nil {
			return &finding{reason: err, hint: fmt.Sprintf("talosctl -n %s service %s; talosctl -n %s logs %s",
				m.Address, id, m.Address, id)}
		}

		return nil
	})
}

func serviceHealthy(services map[string]cluster.Service, id string) error {
	s, ok := services[id]
	switch {
	case !ok:
		return fmt.Errorf("service %s is not there", id)
	case s.State != "Running":
		return fmt.Errorf("service %s is in state %s", id, s.State)
	case !s.Healthy && s.Message != "":
		return fmt.Errorf("service %s is not healthy: %s", id, s.Message)
	case !s.Healthy:
		return fmt.Errorf("service %s is not healthy", id)
	default:
		return nil
	}
}

// etcdMembers checks that every control plane sees exactly the control planes as voting members.
func etcdMembers(ctx context.Context, l *checkRun) *finding {
	planes := l.cluster.ControlPlanes()

	return l.onEach(ctx, l.cluster.ExpectedUp(planes), func(ctx context.Context, api cluster.Talos, m cluster.Member) *finding {
		members, err := api.EtcdMembers(ctx, m.Address)
		if err == nil {
			err = sameMembers(planes, members, l.cluster.Leaving)
		}
		if err != nil {
			return &finding{reason: err, hint: "talosctl -n " + m.Address + " etcd members"}
		}

		return nil
	})
}

func sameMembers(planes []cluster.Member, members []cluster.EtcdMember, leaving bool) error {
	var problems []error
	for _, p := range planes {
		i := slices.IndexFunc(members, func(e cluster.EtcdMember) bool { return e.Is(p) })
		switch {
		case i < 0:
			problems = append(problems, fmt.Errorf("%s is not a member of etcd", p))
		case members[i].Learner:
			problems = append(problems, fmt.Errorf("%s is still a learner in etcd", p))
		}
	}
	for _, e := range members {
		if !leaving && !slices.ContainsFunc(planes, e.Is) {
			problems = append(problems, fmt.Errorf("etcd has a member %q that is no control plane of the cluster", e.Hostname))
		}
	}

	return errors.Join(problems...)
}

func staticPods(ctx context.Context, l *checkRun) *finding {
	planes := l.cluster.ExpectedUp(l.cluster.ControlPlanes())

	return l.onEach(ctx, planes, func(ctx context.Context, api cluster.Talos, m cluster.Member) *finding {
		hint := fmt.Sprintf("talosctl -n %s containers -k; talosctl -n %s get staticpodstatus", m.Address, m.Address)
		pods, err := api.StaticPods(ctx, m.Address)
		if err != nil {
			return &finding{reason: err, hint: hint}
		}
		for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
			i := slices.IndexFunc(pods, func(p cluster.StaticPod) bool { return strings.Contains(p.ID, "/"+component+"-") })
			switch {
			case i < 0:
				return &finding{reason: fmt.Errorf("static pod %s is not there", component), hint: hint}
			case !pods[i].Ready:
				return &finding{reason: fmt.Errorf("static pod %s is not ready", component), hint: hint}
			}
		}

		return nil
	})
}
