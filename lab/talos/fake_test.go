// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos_test

import (
	"context"
	"errors"
	"net"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/talos-proxmox/talos-proxmox/lab/talos"
)

// fakeKubernetes starts clusters that only remember what they were asked.
type fakeKubernetes struct {
	mu       sync.Mutex
	clusters []*fakeCluster
}

func (f *fakeKubernetes) Start(_ context.Context, c talos.KubernetesConfig) (talos.KubernetesCluster, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	k := &fakeCluster{config: c, listener: l, nodes: map[string]talos.NodeSpec{}, runs: map[string]int{}}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("api"))
			_ = conn.Close()
		}
	}()
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
	config    talos.KubernetesConfig
	listener  net.Listener
	mu        sync.Mutex
	nodes     map[string]talos.NodeSpec
	runs      map[string]int
	destroyed bool
}

func (c *fakeCluster) Addr() string { return c.listener.Addr().String() }

func (c *fakeCluster) AdminConfig() *rest.Config { return &rest.Config{Host: "http://" + c.Addr()} }

func (c *fakeCluster) Node(ctx context.Context, n talos.NodeSpec) error {
	c.mu.Lock()
	c.nodes[n.Name] = n
	c.runs[n.Name]++
	run := c.runs[n.Name]
	c.mu.Unlock()

	<-ctx.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runs[n.Name] == run {
		delete(c.nodes, n.Name)
	}

	return nil
}

func (c *fakeCluster) spec(name string) (talos.NodeSpec, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, ok := c.nodes[name]; ok {
		return n, nil
	}

	return talos.NodeSpec{}, errors.New("node " + name + " is not registered")
}

func (c *fakeCluster) Snapshot(context.Context) ([]byte, error) {
	return []byte("snapshot of " + c.config.Name), nil
}

func (c *fakeCluster) Stop() error { return c.listener.Close() }

func (c *fakeCluster) Destroy() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.destroyed = true

	return c.listener.Close()
}

func (c *fakeCluster) wasDestroyed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.destroyed
}
