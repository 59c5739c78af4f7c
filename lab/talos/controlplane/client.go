// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package controlplane

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
)

// client reaches a running API server, and knows its Nodes by a watch: a question a second from each of a thousand nodes
// is more than an API server answers.
type client struct {
	kubernetes kubernetes.Interface
	nodes      listers.NodeLister
	synced     func() bool
	stop       context.CancelFunc
}

// newClient returns a client of the API server, nil where its configuration is none.
func newClient(config *rest.Config) *client {
	config = rest.CopyConfig(config)
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	made, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil
	}
	ctx, stop := context.WithCancel(context.Background())
	factory := informers.NewSharedInformerFactory(made, 0)
	nodes := factory.Core().V1().Nodes()
	c := &client{kubernetes: made, nodes: nodes.Lister(), synced: nodes.Informer().HasSynced, stop: stop}
	factory.Start(ctx.Done())

	return c
}

// Client returns a client of the running API server, nil while there is none.
func (k *Runner) Client() kubernetes.Interface {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.client == nil {
		return nil
	}

	return k.client.kubernetes
}

// nodeTimeout bounds a question for a single Node.
const nodeTimeout = time.Second

// Node returns a Node as the API server last had it; nil while there is none, or none of that name. It is asked for while
// the watch has not begun.
func (k *Runner) Node(ctx context.Context, name string) *corev1.Node {
	k.mu.Lock()
	c := k.client
	k.mu.Unlock()
	if c == nil {
		return nil
	}
	get := c.nodes.Get
	if !c.synced() {
		ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
		defer cancel()
		get = func(name string) (*corev1.Node, error) {
			return c.kubernetes.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		}
	}
	node, err := get(name)
	if err != nil {
		return nil
	}

	return node
}

// setClient makes the client of a cluster that has started, and ends that of one that has stopped. k.mu is held.
func (k *Runner) setClient(c Cluster) {
	if k.client != nil {
		k.client.stop()
		k.client = nil
	}
	if c != nil {
		k.client = newClient(c.AdminConfig())
	}
}
