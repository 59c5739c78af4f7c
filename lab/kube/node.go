// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kube

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

var (
	// ErrReplaced is returned by [Cluster.Node] when a later call took the node over.
	ErrReplaced = errors.New("replaced by a later kubelet of the same node")
	// ErrStopped is returned by [Cluster.Node] when the cluster stops.
	ErrStopped = errors.New("the cluster has stopped")
)

// NodeSpec describes a node as its kubelet registers it, with what Talos adds to it.
type NodeSpec struct {
	// Name is the Node's name. Required.
	Name string
	// Addresses are the node's internal addresses, the first being that of its pods on the host
	// network. At least one.
	Addresses []netip.Addr
	// ControlPlane gives the node its role label; taints are those of Taints alone.
	ControlPlane bool
	// Labels, Annotations and Taints are owned by the spec: what a later spec no longer has is
	// removed from the Node; what others have set stays.
	Labels      map[string]string
	Annotations map[string]string
	Taints      []corev1.Taint

	// KubeletVersion is "v1.35.0"; OSImage "Talos (v1.12.4)"; KernelVersion "6.18.2-talos";
	// ContainerRuntime "containerd://2.1.6". They are reported as they are.
	KubeletVersion   string
	OSImage          string
	KernelVersion    string
	ContainerRuntime string
	// CPU is the number of cores; 0 counts as 1.
	CPU int
	// MemoryMiB is the node's memory; 0 counts as 1024.
	MemoryMiB int
	// BootID tells boots of the node apart. A kubelet that starts in the boot that the Node shows finds
	// its containers running; else they start anew, and count a restart. Empty: every call of
	// [Cluster.Node] that takes no running kubelet over is a boot of its own.
	BootID string
	// BootstrapToken is the ID of the token with which the kubelet joins, "" for a kubelet that asks for no certificate.
	BootstrapToken string
	// StaticPods are the pods that the kubelet runs on its own and mirrors to the API.
	StaticPods []StaticPod
}

// StaticPod describes a pod of the control plane in kube-system.
type StaticPod struct {
	// Name is that of the component, "kube-apiserver"; the mirror pod is called <name>-<node>.
	Name string
	// Image is the image with its tag, "registry.k8s.io/kube-apiserver:v1.35.0".
	Image string
	// Arguments are what the stack adds to the component's own; another pod has other ones.
	Arguments string
	// Manifest is the pod in full; nil stands for one that has little more than its image.
	Manifest *corev1.Pod
}

// Node runs the kubelet of a node until ctx ends; it then returns nil and leaves the Node and its
// pods as they are, so that the control plane finds it silent. A second call for the same name takes
// the node over without a restart of its pods, and the first returns [ErrReplaced]. A call after the
// former one has ended is a reboot, unless [NodeSpec.BootID] says otherwise. It returns an error when
// the API server does not accept the Node, and [ErrStopped] when the cluster stops.
func (c *Cluster) Node(ctx context.Context, n NodeSpec) error {
	if n.Name == "" || len(n.Addresses) == 0 {
		return fmt.Errorf("running kubelet of node %q: a name and an address are needed", n.Name)
	}

	r, former, err := c.take(n)
	if err != nil {
		return fmt.Errorf("running kubelet of node %q: %w", n.Name, err)
	}
	defer c.release(ctx, r)

	k, err := c.newKubelet(n)
	if err != nil {
		return fmt.Errorf("running kubelet of node %q: %w", n.Name, err)
	}
	if former != nil {
		k.adopt(former)
	}
	r.kubelet = k

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.started(cancel)
	if n.ControlPlane {
		go c.publish(ctx)
	}

	if err := k.run(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("running kubelet of node %q: %w", n.Name, err)
	}
	if cause := context.Cause(ctx); errors.Is(cause, ErrReplaced) || errors.Is(cause, ErrStopped) {
		return fmt.Errorf("running kubelet of node %q: %w", n.Name, cause)
	}

	return nil
}

// run serves one call of Node.
type run struct {
	spec    NodeSpec
	kubelet *kubelet
	cancel  chan context.CancelCauseFunc // filled once
	done    chan struct{}
}

func (r *run) started(cancel context.CancelCauseFunc) { r.cancel <- cancel }

// end ends the run and waits for it.
func (r *run) end(cause error) {
	select {
	case cancel := <-r.cancel:
		cancel(cause)
		<-r.done
	case <-r.done:
	}
}

// take makes the caller the only one to run a node and returns the kubelet it ended, if any.
func (c *Cluster) take(n NodeSpec) (*run, *kubelet, error) {
	r := &run{spec: n, cancel: make(chan context.CancelCauseFunc, 1), done: make(chan struct{})}

	c.mu.Lock()
	if c.stopped {
		c.mu.Unlock()

		return nil, nil, ErrStopped
	}
	former := c.kubelets[n.Name]
	c.kubelets[n.Name] = r
	c.mu.Unlock()

	if former == nil {
		return r, nil, nil
	}
	former.end(ErrReplaced)

	return r, former.kubelet, nil
}

// release ends a run. The Service of the API servers loses the node unless another run has it.
func (c *Cluster) release(ctx context.Context, r *run) {
	c.mu.Lock()
	last := c.kubelets[r.spec.Name] == r && !c.stopped
	if last {
		delete(c.kubelets, r.spec.Name)
	}
	c.mu.Unlock()

	close(r.done)
	if last && r.spec.ControlPlane {
		go c.publish(context.WithoutCancel(ctx))
	}
}

func (c *Cluster) newKubelet(n NodeSpec) (*kubelet, error) {
	config, err := c.clientConfig("system:node:"+n.Name, "system:nodes")
	if err != nil {
		return nil, err
	}
	own := rest.CopyConfig(config)
	own.ContentType = "application/vnd.kubernetes.protobuf" // as a kubelet speaks
	client, err := kubernetes.NewForConfig(own)
	if err != nil {
		return nil, err
	}

	made := newKubelet(n, client, c.client, paceOf(c.config.Clock), c.config.Images, time.Now)
	made.programs, made.api, made.adminConfig = c.config.Programs, config, c.admin

	return made, nil
}
