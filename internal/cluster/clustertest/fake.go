// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package clustertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

// ErrUnreachable is what calls to a node that is off return.
var ErrUnreachable = errors.New("connection refused")

// Node plays one machine of the fake cluster.
type Node struct {
	Unreachable bool
	Version     string
	Stage       string
	Unmet       []string
	Services    map[string]cluster.Service
	Members     []cluster.EtcdMember
	Pods        []cluster.StaticPod

	// configuration is in force on the node.
	Configuration string
	// snapshot is the node's copy of etcd.
	Snapshot string
	// blank machines wait in maintenance mode; refuses is what a node says of a configuration.
	Blank   bool
	Refuses error

	Schematic string
	Boots     int
	// images are those of the node's configuration.
	Images map[cluster.Component]string
	// Tried are the configurations that the node tried, and OnTry is what it does with one.
	Tried []string
	OnTry func(n *Node)
	// Firewall lets nobody in who does not have a connection.
	Firewall bool
	// upgrade is what the node does when asked; by default it boots what the image's name says.
	OnUpgrade func(n *Node, image string) error
}

// Fake plays a cluster without machines: nodes by address, and a Kubernetes API in memory.
type Fake struct {
	mu          sync.Mutex
	Nodes       map[string]*Node
	API         kubernetes.Interface
	AccessError error
	// upgraded are the upgrades asked for: "node image".
	Upgraded []string
	// pulled and set are the images that nodes were asked to pull and to run, in order.
	Pulled, ImagesSet []string
	// run is what a node does with an image that it is to run.
	OnSetImage func(address string, component cluster.Component, image string)
	// noImage is what pulling an image ends with.
	PullError error
	// left are the nodes that left, in order.
	Left []string
	// bootstrapped are the nodes on which etcd was started, and noBootstrap is why it cannot be.
	Bootstrapped   []string
	BootstrapError error
}

// Change changes a node while others look at it.
func (c *Fake) Change(address string, f func(*Node)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c.Nodes[address])
}

func (c *Fake) Talos(context.Context) (cluster.Talos, error) { return c, nil }

func (c *Fake) Kubernetes(context.Context) (kubernetes.Interface, error) {
	return c.API, c.AccessError
}

// Redial implements [cluster.Access].
func (c *Fake) Redial(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.Nodes[address]; n != nil && n.Firewall {
		n.Unreachable = true
	}
}

// ask calls f with a node that answers.
func ask[T any](ctx context.Context, c *Fake, address string, f func(*Node) T) (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var zero T
	n, ok := c.Nodes[address]
	switch {
	case ctx.Err() != nil:
		return zero, ctx.Err()
	case !ok, n.Unreachable:
		return zero, ErrUnreachable
	default:
		return f(n), nil
	}
}

func (c *Fake) Version(ctx context.Context, address string) (string, error) {
	version, err := ask(ctx, c, address, func(n *Node) string {
		if n.Blank {
			return ""
		}

		return n.Version
	})
	if err == nil && version == "" {
		err = ErrUnreachable
	}

	return version, err
}

func (c *Fake) Stage(ctx context.Context, address string) (string, []string, error) {
	type stage struct {
		name  string
		unmet []string
	}
	s, err := ask(ctx, c, address, func(n *Node) stage { return stage{n.Stage, n.Unmet} })

	return s.name, s.unmet, err
}

func (c *Fake) Services(ctx context.Context, address string) (map[string]cluster.Service, error) {
	return ask(ctx, c, address, func(n *Node) map[string]cluster.Service { return n.Services })
}

func (c *Fake) EtcdMembers(ctx context.Context, address string) ([]cluster.EtcdMember, error) {
	type answer struct {
		members []cluster.EtcdMember
		blank   bool
	}
	a, err := ask(ctx, c, address, func(n *Node) answer { return answer{n.Members, n.Blank} })
	if a.blank {
		err = ErrUnreachable // it ends connections with a client certificate that it does not know
	}

	return a.members, err
}

func (c *Fake) StaticPods(ctx context.Context, address string) ([]cluster.StaticPod, error) {
	return ask(ctx, c, address, func(n *Node) []cluster.StaticPod { return n.Pods })
}

func (c *Fake) Schematic(ctx context.Context, address string) (string, error) {
	return ask(ctx, c, address, func(n *Node) string { return n.Schematic })
}

func (c *Fake) BootID(ctx context.Context, address string) (string, error) {
	return ask(ctx, c, address, func(n *Node) string { return fmt.Sprint(n.Boots) })
}

func (c *Fake) Upgrade(ctx context.Context, address, image string, _ func(string)) error {
	c.mu.Lock()
	c.Upgraded = append(c.Upgraded, address+" "+image)
	c.mu.Unlock()
	err, unreachable := ask(ctx, c, address, func(n *Node) error {
		if n.OnUpgrade != nil {
			return n.OnUpgrade(n, image)
		}
		n.Reboot(image)

		return nil
	})

	return errors.Join(err, unreachable)
}

func (c *Fake) Retire(ctx context.Context, address string) error {
	_, err := ask(ctx, c, address, func(n *Node) bool { n.Unreachable = true; return true })
	if err != nil {
		return err
	}
	c.forget(address)

	return nil
}

func (c *Fake) RemoveEtcdMember(ctx context.Context, address string, id uint64) error {
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

func (c *Fake) Bootstrap(ctx context.Context, address string) error {
	err, unreachable := ask(ctx, c, address, func(n *Node) error {
		if c.BootstrapError != nil {
			return c.BootstrapError
		}
		c.Bootstrapped = append(c.Bootstrapped, address)
		n.Services["etcd"] = cluster.Service{State: "Running", Healthy: true}
		n.Members = []cluster.EtcdMember{{ID: 1, Addresses: []string{address}}}

		return nil
	})

	return errors.Join(unreachable, err)
}

// forget takes a node out of etcd and records that it left.
func (c *Fake) forget(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Left = append(c.Left, address)
	for _, n := range c.Nodes {
		n.Members = slices.DeleteFunc(slices.Clone(n.Members), func(e cluster.EtcdMember) bool {
			return slices.Contains(e.Addresses, address)
		})
	}
}

func (c *Fake) Image(ctx context.Context, address string, component cluster.Component) (string, error) {
	return ask(ctx, c, address, func(n *Node) string { return n.Images[component] })
}

func (c *Fake) SetImage(ctx context.Context, address string, component cluster.Component, image string) error {
	_, err := ask(ctx, c, address, func(n *Node) bool {
		n.Images[component] = image
		c.ImagesSet = append(c.ImagesSet, address+" "+image)

		return true
	})
	if err == nil && c.OnSetImage != nil {
		c.OnSetImage(address, component, image)
	}

	return err
}

func (c *Fake) Pull(ctx context.Context, address string, _ cluster.Component, image string) error {
	_, err := ask(ctx, c, address, func(*Node) bool {
		c.Pulled = append(c.Pulled, address+" "+image)

		return true
	})

	return errors.Join(err, c.PullError)
}

func (c *Fake) Snapshot(ctx context.Context, address string, to io.Writer) error {
	content, err := ask(ctx, c, address, func(n *Node) string { return n.Snapshot })
	if err == nil {
		_, err = io.WriteString(to, content)
	}

	return err
}

func (c *Fake) Configuration(ctx context.Context, address string) ([]byte, error) {
	return ask(ctx, c, address, func(n *Node) []byte { return []byte(n.Configuration) })
}

func (c *Fake) Reboots(ctx context.Context, address string, configuration []byte) (bool, error) {
	type answer struct {
		reboots bool
		err     error
	}
	a, err := ask(ctx, c, address, func(n *Node) answer {
		if n.Blank {
			return answer{err: ErrUnreachable}
		}

		return answer{strings.Contains(string(configuration), "reboot"), n.Refuses}
	})

	return a.reboots, errors.Join(err, a.err)
}

func (c *Fake) Try(ctx context.Context, address string, configuration []byte, _ time.Duration) error {
	_, err := ask(ctx, c, address, func(n *Node) bool {
		n.Tried = append(n.Tried, string(configuration))
		if n.OnTry != nil {
			n.OnTry(n)
		}

		return true
	})

	return err
}

func (c *Fake) Unconfigured(ctx context.Context, address string) bool {
	blank, _ := ask(ctx, c, address, func(n *Node) bool { return n.Blank })

	return blank
}

// Reboot boots an image named "schematic:version".
func (n *Node) Reboot(image string) {
	n.Schematic, n.Version, _ = strings.Cut(image, ":")
	n.Boots++
}

// Address returns the address of the i-th node, counted from 1.
func Address(i int) string { return fmt.Sprintf("10.0.0.%d", i) }

// Describe returns a cluster of control planes and workers as the stack describes it.
func Describe(planes, workers int) cluster.Cluster {
	c := cluster.Cluster{Name: "test", KubeProxy: true, CoreDNS: true}
	for i := range planes + workers {
		name := fmt.Sprintf("node-%d", i+1)
		c.Members = append(c.Members, cluster.Member{
			Name: name, Hostname: name, Address: Address(i + 1), ControlPlane: i < planes,
		})
	}

	return c
}

// Healthy returns a cluster that is as described.
func Healthy(d cluster.Cluster, objects ...runtime.Object) *Fake {
	c := &Fake{Nodes: map[string]*Node{}}
	var members []cluster.EtcdMember
	for i, m := range d.ControlPlanes() {
		members = append(members, cluster.EtcdMember{ID: uint64(i + 1), Hostname: m.Hostname, Addresses: []string{m.Address}})
	}
	for _, m := range d.Members {
		n := &Node{
			Version: "v1.12.4", Stage: "running", Schematic: "plain",
			Services: map[string]cluster.Service{"kubelet": {State: "Running", Healthy: true}},
		}
		if m.ControlPlane {
			n.Services["etcd"] = cluster.Service{State: "Running", Healthy: true}
			n.Members = members
			for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
				n.Pods = append(n.Pods, cluster.StaticPod{ID: "kube-system/" + component + "-" + m.Hostname, Ready: true})
			}
		}
		c.Nodes[m.Address] = n
		objects = append(objects, KubernetesNode(m, corev1.ConditionTrue))
	}
	count := int32(len(d.Members))
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
	c.API = fake.NewClientset(objects...)

	return c
}

// KubernetesNode returns the Node of a member.
func KubernetesNode(m cluster.Member, ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: m.Hostname},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: ready, Reason: "NetworkPluginNotReady", Message: "cni plugin not initialized",
		}}},
	}
}
