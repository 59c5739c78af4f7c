// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talosapi

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

// Client calls the Talos API of a cluster's nodes. It dials each node at its own address, through HTTPS_PROXY
// where that is set, and keeps the connection until Close.
type Client struct {
	config *clientconfig.Context

	mu    sync.Mutex
	nodes map[string]*client.Client
}

// NewClient reads credentials from a talosconfig; it dials nothing yet.
func NewClient(talosconfig string) (*Client, error) {
	config, err := clientconfig.FromString(talosconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the talosconfig: %w", err)
	}
	current, ok := config.Contexts[config.Context]
	if !ok {
		return nil, fmt.Errorf("reading the talosconfig: it has no context %q", config.Context)
	}

	return &Client{config: current, nodes: map[string]*client.Client{}}, nil
}

// Close ends every connection.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()

	var errs []error
	for address, node := range c.nodes {
		errs = append(errs, node.Close())
		delete(c.nodes, address)
	}

	return errors.Join(errs...)
}

// redialGrace is how long calls go on over a connection that is used no more.
const redialGrace = time.Minute

// Redial has later calls to a node open a connection of their own. Calls that are under way end over the old one.
func (c *Client) Redial(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if node, ok := c.nodes[address]; ok {
		delete(c.nodes, address)
		time.AfterFunc(redialGrace, func() { _ = node.Close() })
	}
}

// node returns the connection to one node.
func (c *Client) node(ctx context.Context, address string) (*client.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if node, ok := c.nodes[address]; ok {
		return node, nil
	}

	// A node that reboots must be found again at once, not after gRPC's two minutes.
	retry := backoff.Config{BaseDelay: 200 * time.Millisecond, Multiplier: 1.6, MaxDelay: 2 * time.Second}
	node, err := client.New(ctx,
		client.WithConfigContext(c.config),
		client.WithEndpoints(address),
		client.WithDefaultGRPCDialOptions(),
		client.WithGRPCDialOptions(grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: retry, MinConnectTimeout: 5 * time.Second,
		})),
	)
	if err != nil {
		return nil, fmt.Errorf("opening the Talos API of %s: %w", address, err)
	}
	c.nodes[address] = node

	return node, nil
}

// Version returns the Talos version that runs.
func (c *Client) Version(ctx context.Context, address string) (string, error) {
	node, err := c.node(ctx, address)
	if err != nil {
		return "", err
	}
	resp, err := node.Version(ctx)
	if err != nil {
		return "", fmt.Errorf("asking for the version: %w", err)
	}
	for _, m := range resp.GetMessages() {
		return m.GetVersion().GetTag(), nil
	}

	return "", errors.New("asking for the version: the node sent an empty answer")
}

// Stage returns the machine's stage and the conditions that it still waits for.
func (c *Client) Stage(ctx context.Context, address string) (string, []string, error) {
	node, err := c.node(ctx, address)
	if err != nil {
		return "", nil, err
	}
	status, err := safe.StateGet[*runtime.MachineStatus](ctx, node.COSI, runtime.NewMachineStatus().Metadata())
	if err != nil {
		return "", nil, fmt.Errorf("asking for the machine's status: %w", err)
	}
	spec := status.TypedSpec()
	unmet := make([]string, 0, len(spec.Status.UnmetConditions))
	for _, u := range spec.Status.UnmetConditions {
		unmet = append(unmet, u.Name+": "+u.Reason)
	}

	return spec.Stage.String(), unmet, nil
}

// Services returns Talos's services, by id.
func (c *Client) Services(ctx context.Context, address string) (map[string]cluster.Service, error) {
	node, err := c.node(ctx, address)
	if err != nil {
		return nil, err
	}
	resp, err := node.ServiceList(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking for the services: %w", err)
	}

	services := map[string]cluster.Service{}
	for _, m := range resp.GetMessages() {
		for _, s := range m.GetServices() {
			services[s.GetId()] = cluster.Service{
				State:   s.GetState(),
				Healthy: s.GetHealth().GetUnknown() || s.GetHealth().GetHealthy(),
				Message: s.GetHealth().GetLastMessage(),
			}
		}
	}

	return services, nil
}

// EtcdMembers returns etcd's members as this node sees them.
func (c *Client) EtcdMembers(ctx context.Context, address string) ([]cluster.EtcdMember, error) {
	node, err := c.node(ctx, address)
	if err != nil {
		return nil, err
	}
	resp, err := node.EtcdMemberList(ctx, &machineapi.EtcdMemberListRequest{})
	if err != nil {
		return nil, fmt.Errorf("asking for etcd's members: %w", err)
	}

	var members []cluster.EtcdMember
	for _, m := range resp.GetMessages() {
		for _, e := range m.GetMembers() {
			members = append(members, cluster.EtcdMember{
				ID: e.GetId(), Hostname: e.GetHostname(), Addresses: hostsOf(e.GetPeerUrls()), Learner: e.GetIsLearner(),
			})
		}
	}

	return members, nil
}

// hostsOf returns the hosts of URLs; what is no URL is left out.
func hostsOf(urls []string) []string {
	var hosts []string
	for _, u := range urls {
		if parsed, err := url.Parse(u); err == nil && parsed.Hostname() != "" {
			hosts = append(hosts, parsed.Hostname())
		}
	}

	return hosts
}

// StaticPods returns the control plane pods of a node.
func (c *Client) StaticPods(ctx context.Context, address string) ([]cluster.StaticPod, error) {
	node, err := c.node(ctx, address)
	if err != nil {
		return nil, err
	}
	list, err := safe.StateListAll[*k8s.StaticPodStatus](ctx, node.COSI)
	if err != nil {
		return nil, fmt.Errorf("asking for the static pods: %w", err)
	}

	var pods []cluster.StaticPod
	for p := range list.All() {
		pods = append(pods, cluster.StaticPod{ID: p.Metadata().ID(), Ready: podReady(p.TypedSpec().PodStatus)})
	}

	return pods, nil
}

// podReady reads the Ready condition from a pod's status.
func podReady(status map[string]any) bool {
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["type"] == "Ready" {
			return condition["status"] == "True"
		}
	}

	return false
}

// Kubeconfig returns an administrator's kubeconfig, issued by a control plane.
func (c *Client) Kubeconfig(ctx context.Context, address string) ([]byte, error) {
	node, err := c.node(ctx, address)
	if err != nil {
		return nil, err
	}
	config, err := node.Kubeconfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking for a kubeconfig: %w", err)
	}

	return config, nil
}
