// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/talos-proxmox/talos-proxmox/lab/talos/controlplane"
)

// fakeKubernetes starts clusters that only remember what they were asked.
type fakeKubernetes struct {
	mu       sync.Mutex
	clusters []*fakeCluster
	api      fakeAPI
}

func (f *fakeKubernetes) Start(_ context.Context, c controlplane.Config) (controlplane.Cluster, error) {
	k := &fakeCluster{
		config: c, nodes: map[string]controlplane.NodeSpec{}, runs: map[string]chan struct{}{}, api: &f.api,
	}
	k.server = httptest.NewServer(k.api)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clusters = append(f.clusters, k)

	return k, nil
}

func (f *fakeKubernetes) last() *fakeCluster {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.clusters) == 0 {
		return nil
	}

	return f.clusters[len(f.clusters)-1]
}

func (f *fakeKubernetes) started() int {
	f.mu.Lock()
	defer f.mu.Unlock()

	return len(f.clusters)
}

type fakeCluster struct {
	config    controlplane.Config
	server    *httptest.Server
	mu        sync.Mutex
	nodes     map[string]controlplane.NodeSpec
	runs      map[string]chan struct{}
	destroyed bool
	api       *fakeAPI
}

func (c *fakeCluster) Addr() string { return c.server.Listener.Addr().String() }

func (c *fakeCluster) AdminConfig() *rest.Config { return &rest.Config{Host: "http://" + c.Addr()} }

func (c *fakeCluster) Node(ctx context.Context, n controlplane.NodeSpec) error {
	replaced := make(chan struct{})
	c.mu.Lock()
	if former := c.runs[n.Name]; former != nil {
		close(former)
	}
	c.nodes[n.Name], c.runs[n.Name] = n, replaced
	c.mu.Unlock()

	select {
	case <-replaced:
		return errors.New("another kubelet took the node over")
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runs[n.Name] == replaced {
		delete(c.nodes, n.Name)
		delete(c.runs, n.Name)
	}

	return nil
}

func (c *fakeCluster) spec(name string) (controlplane.NodeSpec, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, ok := c.nodes[name]; ok {
		return n, nil
	}

	return controlplane.NodeSpec{}, errors.New("node " + name + " is not registered")
}

func (c *fakeCluster) Snapshot(context.Context) ([]byte, error) {
	return []byte("snapshot of " + c.config.Name), nil
}

func (c *fakeCluster) Stop() error {
	c.server.CloseClientConnections()
	c.server.Close()

	return nil
}

func (c *fakeCluster) Destroy() error {
	c.mu.Lock()
	c.destroyed = true
	c.mu.Unlock()

	return c.Stop()
}

func (c *fakeCluster) wasDestroyed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.destroyed
}
