// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package operations_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/talos-proxmox/talos-proxmox/internal/operations"
)

// errSilent is what a node that is off answers.
var errSilent = errors.New("connection refused")

// node is one machine of the fake cluster.
type node struct {
	silent   bool
	version  string
	stage    string
	unmet    []string
	services map[string]operations.Service
	members  []operations.EtcdMember
	pods     []operations.StaticPod

	// configuration is in force on the node.
	configuration string
	// snapshot is the node's copy of etcd.
	snapshot string
	// blank machines wait in maintenance mode; refuses is what a node says of a configuration.
	blank   bool
	refuses error

	schematic string
	boots     int
	// images are those of the node's configuration.
	images map[operations.Component]string
	// upgrade is what the node does when asked; by default it boots what the image's name says.
	upgrade func(n *node, image string) error
}

// cluster is a cluster without machines: nodes by address, and a Kubernetes API in memory.
type cluster struct {
	mu         sync.Mutex
	nodes      map[string]*node
	kubernetes kubernetes.Interface
	noAccess   error
	// upgraded are the upgrades asked for: "node image".
	upgraded []string
	// pulled and set are the images that nodes were asked to pull and to run, in order.
	pulled, set []string
	// run is what a node does with an image that it is to run.
	run func(address string, component operations.Component, image string)
	// noImage is what pulling an image ends with.
	noImage error
	// left are the nodes that left, in order.
	left []string
	// bootstrapped are the nodes on which etcd was started, and noBootstrap is why it cannot be.
	bootstrapped []string
	noBootstrap  error
}

// change does something to a node while others look.
func (c *cluster) change(address string, f func(*node)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c.nodes[address])
}

func (c *cluster) Talos(context.Context) (operations.Talos, error) { return c, nil }

func (c *cluster) Kubernetes(context.Context) (kubernetes.Interface, error) {
	return c.kubernetes, c.noAccess
}

// ask looks at a node that answers.
func ask[T any](ctx context.Context, c *cluster, address string, f func(*node) T) (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var zero T
	n, ok := c.nodes[address]
	switch {
	case ctx.Err() != nil:
		return zero, ctx.Err()
	case !ok, n.silent:
		return zero, errSilent
	default:
		return f(n), nil
	}
}

func (c *cluster) Version(ctx context.Context, address string) (string, error) {
	version, err := ask(ctx, c, address, func(n *node) string {
		if n.blank {
			return ""
		}

		return n.version
	})
	if err == nil && version == "" {
		err = errSilent
	}

	return version, err
}

func (c *cluster) Stage(ctx context.Context, address string) (string, []string, error) {
	type stage struct {
		name  string
		unmet []string
	}
	s, err := ask(ctx, c, address, func(n *node) stage { return stage{n.stage, n.unmet} })

	return s.name, s.unmet, err
}

func (c *cluster) Services(ctx context.Context, address string) (map[string]operations.Service, error) {
	return ask(ctx, c, address, func(n *node) map[string]operations.Service { return n.services })
}

func (c *cluster) EtcdMembers(ctx context.Context, address string) ([]operations.EtcdMember, error) {
	return ask(ctx, c, address, func(n *node) []operations.EtcdMember { return n.members })
}

func (c *cluster) StaticPods(ctx context.Context, address string) ([]operations.StaticPod, error) {
	return ask(ctx, c, address, func(n *node) []operations.StaticPod { return n.pods })
}

func (c *cluster) Schematic(ctx context.Context, address string) (string, error) {
	return ask(ctx, c, address, func(n *node) string { return n.schematic })
}

func (c *cluster) BootID(ctx context.Context, address string) (string, error) {
	return ask(ctx, c, address, func(n *node) string { return fmt.Sprint(n.boots) })
}

func (c *cluster) Upgrade(ctx context.Context, address, image string, _ func(string)) error {
	c.mu.Lock()
	c.upgraded = append(c.upgraded, address+" "+image)
	c.mu.Unlock()
	err, unreachable := ask(ctx, c, address, func(n *node) error {
		if n.upgrade != nil {
			return n.upgrade(n, image)
		}
		n.boot(image)

		return nil
	})

	return errors.Join(err, unreachable)
}

func (c *cluster) Retire(ctx context.Context, address string) error {
	_, err := ask(ctx, c, address, func(n *node) bool { n.silent = true; return true })
	if err != nil {
		return err
	}
	c.forget(address)

	return nil
}

func (c *cluster) RemoveEtcdMember(ctx context.Context, address string, id uint64) error {
	members, err := c.EtcdMembers(ctx, address)
	if err != nil {
		return err
	}
	for _, m := range members {
		if m.ID == id {
			c.forget(m.Addresses[0])
		}
	}

	return nil
}

func (c *cluster) Bootstrap(ctx context.Context, address string) error {
	err, unreachable := ask(ctx, c, address, func(n *node) error {
		if c.noBootstrap != nil {
			return c.noBootstrap
		}
		c.bootstrapped = append(c.bootstrapped, address)
		n.services["etcd"] = operations.Service{State: "Running", Healthy: true}
		n.members = []operations.EtcdMember{{ID: 1, Addresses: []string{address}}}

		return nil
	})

	return errors.Join(unreachable, err)
}

// forget takes a node out of etcd and out of the list of those that left.
func (c *cluster) forget(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = append(c.left, address)
	for _, n := range c.nodes {
		n.members = slices.DeleteFunc(slices.Clone(n.members), func(e operations.EtcdMember) bool {
			return slices.Contains(e.Addresses, address)
		})
	}
}

func (c *cluster) Image(ctx context.Context, address string, component operations.Component) (string, error) {
	return ask(ctx, c, address, func(n *node) string { return n.images[component] })
}

func (c *cluster) SetImage(ctx context.Context, address string, component operations.Component, image string) error {
	_, err := ask(ctx, c, address, func(n *node) bool {
		n.images[component] = image
		c.set = append(c.set, address+" "+image)

		return true
	})
	if err == nil && c.run != nil {
		c.run(address, component, image)
	}

	return err
}

func (c *cluster) Pull(ctx context.Context, address string, _ operations.Component, image string) error {
	_, err := ask(ctx, c, address, func(*node) bool {
		c.pulled = append(c.pulled, address+" "+image)

		return true
	})

	return errors.Join(err, c.noImage)
}

func (c *cluster) Snapshot(ctx context.Context, address string, to io.Writer) error {
	content, err := ask(ctx, c, address, func(n *node) string { return n.snapshot })
	if err == nil {
		_, err = io.WriteString(to, content)
	}

	return err
}

func (c *cluster) Configuration(ctx context.Context, address string) ([]byte, error) {
	return ask(ctx, c, address, func(n *node) []byte { return []byte(n.configuration) })
}

func (c *cluster) Reboots(ctx context.Context, address string, configuration []byte) (bool, error) {
	type answer struct {
		reboots bool
		err     error
	}
	a, err := ask(ctx, c, address, func(n *node) answer {
		if n.blank {
			return answer{err: errSilent}
		}

		return answer{strings.Contains(string(configuration), "reboot"), n.refuses}
	})

	return a.reboots, errors.Join(err, a.err)
}

func (c *cluster) Unconfigured(ctx context.Context, address string) bool {
	blank, _ := ask(ctx, c, address, func(n *node) bool { return n.blank })

	return blank
}

// boot is a reboot into an image named "schematic:version".
func (n *node) boot(image string) {
	n.schematic, n.version, _ = strings.Cut(image, ":")
	n.boots++
}

// address of the i-th node, counted from 1.
func address(i int) string { return fmt.Sprintf("10.0.0.%d", i) }

// described is a cluster of control planes and workers as the stack says it should be.
func described(planes, workers int) operations.Cluster {
	c := operations.Cluster{Name: "test", KubeProxy: true, CoreDNS: true}
	for i := range planes + workers {
		name := fmt.Sprintf("node-%d", i+1)
		c.Members = append(c.Members, operations.Member{
			Name: name, Hostname: name, Address: address(i + 1), ControlPlane: i < planes,
		})
	}

	return c
}

// healthy is a cluster that is as described.
func healthy(d operations.Cluster, objects ...runtime.Object) *cluster {
	c := &cluster{nodes: map[string]*node{}}
	var members []operations.EtcdMember
	for i, m := range d.ControlPlanes() {
		members = append(members, operations.EtcdMember{ID: uint64(i + 1), Hostname: m.Hostname, Addresses: []string{m.Address}})
	}
	for _, m := range d.Members {
		n := &node{
			version: "v1.12.4", stage: "running", schematic: "plain",
			services: map[string]operations.Service{"kubelet": {State: "Running", Healthy: true}},
		}
		if m.ControlPlane {
			n.services["etcd"] = operations.Service{State: "Running", Healthy: true}
			n.members = members
			for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
				n.pods = append(n.pods, operations.StaticPod{ID: "kube-system/" + component + "-" + m.Hostname, Ready: true})
			}
		}
		c.nodes[m.Address] = n
		objects = append(objects, kubernetesNode(m, corev1.ConditionTrue))
	}
	count := int32(len(d.Members)) //nolint:gosec // a handful
	two := int32(2)
	objects = append(objects,
		&appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-proxy"},
			Status:     appsv1.DaemonSetStatus{DesiredNumberScheduled: count, NumberReady: count},
		},
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "coredns"},
			Spec:       appsv1.DeploymentSpec{Replicas: &two},
			Status:     appsv1.DeploymentStatus{ReadyReplicas: 2},
		})
	c.kubernetes = fake.NewClientset(objects...)

	return c
}

func kubernetesNode(m operations.Member, ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: m.Hostname},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: ready, Reason: "NetworkPluginNotReady", Message: "cni plugin not initialized",
		}}},
	}
}
