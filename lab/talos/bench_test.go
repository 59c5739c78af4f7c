// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/talos-proxmox/talos-proxmox/lab/fault"
	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/talos"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/controlplane"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/node"
)

const (
	schematicA = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"
	schematicB = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"
	installer  = "factory.talos.dev/nocloud-installer/"
	endpoint   = "https://10.0.0.9:6443"
	waitLimit  = 20 * time.Second
)

// bench builds a site by hand: a network, machines, and the nodes in them.
type bench struct {
	t     *testing.T
	ctx   context.Context // ends with the test
	net   *guest.Net
	nodes *node.Nodes
	kube  *fakeKubernetes
	trace *lockedBuffer
	clock guest.Clock
	// faults are none at first.
	faults *fault.Set
	// shared tells that this bench has its cluster with the shared secrets.
	shared bool
	// dial reaches nodes; nil stands for the lab's network.
	dial func(ctx context.Context, address string) (net.Conn, error)
	wg   sync.WaitGroup
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{
		t: t, net: guest.NewNet(), kube: &fakeKubernetes{}, trace: &lockedBuffer{},
		clock: guest.Clock{Speed: 200},
	}
	b.faults = fault.New(guest.NewTrace(b.trace), nil)
	ctx, cancel := context.WithCancel(context.Background())
	b.ctx = ctx
	b.nodes = talos.New(node.Options{Kubernetes: b.kube, Dir: t.TempDir()})
	t.Cleanup(func() {
		cancel()
		b.wg.Wait()
		require.NoError(t, b.nodes.Close())
	})

	return b
}

// cluster holds the secrets and configurations of one cluster.
type cluster struct {
	bench  *bench
	bundle *secrets.Bundle
	input  *generate.Input
}

// cluster returns a new cluster of this bench. Different benches share the secrets, whose RSA key takes
// seconds to make; on one bench every cluster has its own.
func (b *bench) cluster() *cluster {
	b.t.Helper()
	if !b.shared {
		b.shared = true

		return b.clusterWith(sharedSecrets())
	}

	return b.clusterWith(newSecrets())
}

var sharedSecrets = sync.OnceValue(newSecrets)

func newSecrets() *secrets.Bundle {
	bundle, err := secrets.NewBundle(secrets.NewClock(), config.TalosVersion1_12)
	if err != nil {
		return nil // NewInput says that it has none
	}

	return bundle
}

func (b *bench) clusterWith(bundle *secrets.Bundle) *cluster {
	b.t.Helper()

	return b.clusterAt(endpoint, bundle)
}

// clusterAt returns a cluster whose endpoint is elsewhere.
func (b *bench) clusterAt(endpoint string, bundle *secrets.Bundle) *cluster {
	b.t.Helper()
	input, err := generate.NewInput("demo", endpoint, "1.35.0",
		generate.WithSecretsBundle(bundle), generate.WithVersionContract(config.TalosVersion1_12),
		generate.WithInstallDisk("/dev/sda"), generate.WithInstallImage(installer+schematicA+":v1.12.4"))
	require.NoError(b.t, err)

	return &cluster{bench: b, bundle: bundle, input: input}
}

// config returns a node's configuration, its hostname among it; change may change it.
func (c *cluster) config(role machine.Type, hostname string, change func(*v1alpha1.Config)) []byte {
	c.bench.t.Helper()
	p, err := c.input.Config(role)
	require.NoError(c.bench.t, err)
	p, err = p.PatchV1Alpha1(func(cfg *v1alpha1.Config) error {
		if role == machine.TypeControlPlane {
			cfg.ClusterConfig.APIServerConfig.ExtraCertSANs = []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.9"}
			cfg.MachineConfig.MachineNetwork = &v1alpha1.NetworkConfig{
				NetworkInterfaces: v1alpha1.NetworkDeviceList{{
					DeviceInterface: "eth0", DeviceVIPConfig: &v1alpha1.DeviceVIPConfig{SharedIP: "10.0.0.9"},
				}},
			}
		}
		cfg.ClusterConfig.ClusterNetwork.CNI = &v1alpha1.CNIConfig{CNIName: "none"}
		cfg.ClusterConfig.ProxyConfig = &v1alpha1.ProxyConfig{Disabled: &[]bool{true}[0]}
		cfg.ClusterConfig.CoreDNSConfig = &v1alpha1.CoreDNS{CoreDNSDisabled: &[]bool{true}[0]}
		if change != nil {
			change(cfg)
		}

		return nil
	})
	require.NoError(c.bench.t, err)
	data, err := p.Bytes()
	require.NoError(c.bench.t, err)

	return bytes.Replace(data, []byte("auto: stable"), []byte("auto: \"off\"\nhostname: "+hostname), 1)
}

// dialer reaches the site's network and, as its time runs faster, tries again sooner than gRPC does.
func (b *bench) dialer() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return b.connect(ctx, addr)
		}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1, MaxDelay: 20 * time.Millisecond},
			MinConnectTimeout: waitLimit,
		}),
	}
}

// insecure returns a client of maintenance mode.
func (b *bench) insecure(v *vm) *client.Client {
	b.t.Helper()
	c, err := client.New(b.ctx, client.WithEndpoints(v.addr()), client.WithGRPCDialOptions(b.dialer()...),
		client.WithTLSConfig(&tls.Config{InsecureSkipVerify: true})) // maintenance mode
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = c.Close() })

	return c
}

// client returns an administrator of the cluster at one node.
func (c *cluster) client(v *vm) *client.Client {
	c.bench.t.Helper()
	cfg, err := c.input.Talosconfig()
	require.NoError(c.bench.t, err)

	return c.bench.clientWith(cfg, v)
}

func (b *bench) clientWith(cfg *clientconfig.Config, v *vm) *client.Client {
	b.t.Helper()
	c, err := client.New(b.ctx, client.WithConfig(cfg), client.WithEndpoints(v.addr()),
		client.WithGRPCDialOptions(b.dialer()...))
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = c.Close() })

	return c
}

// eventually polls until check succeeds and fails with its last error.
func (b *bench) eventually(what string, check func() error) {
	b.t.Helper()
	var err error
	for start := time.Now(); time.Since(start) < waitLimit; {
		if err = check(); err == nil {
			return
		}
		select {
		case <-b.ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
	require.NoError(b.t, err, "%s\nstatus: %s\ntrace: %s", what, toJSON(b.nodes.Status()), b.trace.String())
}

func (b *bench) node(v *vm) (node.NodeStatus, error) {
	for _, n := range b.nodes.Status().Nodes {
		if n.VMID == v.m.VMID {
			return n, nil
		}
	}

	return node.NodeStatus{}, errors.New("the machine is not running")
}

func (b *bench) awaitStage(v *vm, stage string) {
	b.t.Helper()
	b.eventually(fmt.Sprintf("VM %d reaches %s", v.m.VMID, stage), func() error {
		n, err := b.node(v)
		if err == nil && n.Stage != stage {
			err = fmt.Errorf("stage is %q: %s", n.Stage, n.Problem)
		}

		return err
	})
}

func (b *bench) awaitServing(vms ...*vm) {
	b.t.Helper()
	for _, v := range vms {
		b.eventually(fmt.Sprintf("VM %d serves", v.m.VMID), func() error {
			n, err := b.node(v)
			if err == nil && (!n.Serving || n.Stage != "running") {
				err = fmt.Errorf("stage %q, serving %v: %s", n.Stage, n.Serving, n.Problem)
			}

			return err
		})
	}
}

func toJSON(v any) string {
	content, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err.Error()
	}

	return string(content)
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.buf.Write(p) // never fails
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.buf.String()
}

// events returns the traced operations of one kind.
func (l *lockedBuffer) events(op string) []guest.Event {
	var out []guest.Event
	for line := range strings.Lines(l.String()) {
		var e guest.Event
		if json.Unmarshal([]byte(line), &e) == nil && e.Op == op {
			out = append(out, e)
		}
	}

	return out
}

func vmAddr(s string) netip.Addr { return netip.MustParseAddr(s) }

// spec returns what a node's kubelet registered, once it has.
func (b *bench) spec(name string) controlplane.NodeSpec {
	b.t.Helper()
	var spec controlplane.NodeSpec
	b.eventually(name+" is registered", func() (err error) {
		spec, err = b.kube.last().spec(name)

		return err
	})

	return spec
}
