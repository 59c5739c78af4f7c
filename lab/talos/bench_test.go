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

	"github.com/talos-proxmox/talos-proxmox/lab/site"
	"github.com/talos-proxmox/talos-proxmox/lab/talos"
)

const (
	schematicA = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"
	schematicB = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"
	installer  = "factory.talos.dev/nocloud-installer/"
	endpoint   = "https://10.0.0.9:6443"
	waitLimit  = 20 * time.Second
)

// bench is a site by hand: a network, machines, and the nodes in them.
type bench struct {
	t     *testing.T
	ctx   context.Context //nolint:containedctx // ends with the test
	net   *site.Net
	nodes *talos.Nodes
	kube  *fakeKubernetes
	trace *lockedBuffer
	clock site.Clock
	wg    sync.WaitGroup
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{
		t: t, net: site.NewNet(), kube: &fakeKubernetes{}, trace: &lockedBuffer{},
		clock: site.Clock{Speed: 200},
	}
	ctx, cancel := context.WithCancel(context.Background())
	b.ctx = ctx
	b.nodes = talos.New(talos.Options{Kubernetes: b.kube, Dir: t.TempDir()})
	t.Cleanup(func() {
		cancel()
		b.wg.Wait()
		require.NoError(t, b.nodes.Close())
	})

	return b
}

// vm is a machine whose disk survives its power cycles.
type vm struct {
	bench *bench
	m     site.Machine
	mu    sync.Mutex
	disk  []byte
	off   context.CancelFunc
	exits []site.Exit
	done  chan struct{}
	acpi  chan struct{}
}

func iso(version string) *site.Image {
	return &site.Image{
		Talos: version, Schematic: schematicA, Extensions: []string{"siderolabs/qemu-guest-agent"},
		Platform: "nocloud", Arch: "amd64", Kind: "iso",
	}
}

// vm makes a machine with a blank disk and a nocloud ISO; change may change it before power-on.
func (b *bench) vm(id int, change func(*site.Machine)) *vm {
	b.t.Helper()
	v := &vm{bench: b}
	v.m = site.Machine{
		Host: "pve", VMID: id, Name: fmt.Sprintf("vm-%d", id), UUID: fmt.Sprintf("uuid-%d", id),
		MemoryMiB: 4096, Cores: 2, CPUType: "host", AgentEnabled: true,
		NICs: []site.NIC{{MAC: fmt.Sprintf("BC:24:11:00:00:%02X", id), Model: "virtio"}},
		CD:   iso("v1.12.4"),
		CloudInit: &site.CloudInit{
			Hostname:  fmt.Sprintf("vm-%d", id),
			IPConfigs: []site.IPConfig{{IPv4: netip.MustParsePrefix(fmt.Sprintf("10.0.0.%d/24", id))}},
		},
		Net: b.net, Clock: b.clock, Trace: site.NewTrace(b.trace), PullImage: pullImage,
	}
	v.m.Disks = []*site.Disk{{
		Device: "scsi0", Size: 20 << 30,
		Load: func() []byte {
			v.mu.Lock()
			defer v.mu.Unlock()

			return bytes.Clone(v.disk)
		},
		Store: func(content []byte) error {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.disk = bytes.Clone(content)

			return nil
		},
	}}
	if change != nil {
		change(&v.m)
	}

	return v
}

// pullImage is the site's registry: every nocloud installer of a known schematic.
func pullImage(_ context.Context, ref string) (*site.Image, error) {
	rest, ok := strings.CutPrefix(ref, installer)
	if !ok {
		return nil, fmt.Errorf("%s: not found", ref)
	}
	schematic, version, _ := strings.Cut(rest, ":")
	if schematic != schematicA && schematic != schematicB {
		return nil, fmt.Errorf("%s: not found", ref)
	}

	return &site.Image{Talos: version, Schematic: schematic, Platform: "nocloud", Arch: "amd64", Kind: "installer"}, nil
}

// on powers the machine on, disk first in its boot order.
func (v *vm) on() {
	ctx, off := context.WithCancel(v.bench.ctx)
	v.mu.Lock()
	v.off, v.done, v.acpi = off, make(chan struct{}), make(chan struct{})
	v.mu.Unlock()

	v.bench.wg.Go(func() {
		defer close(v.done)
		for ctx.Err() == nil {
			m := v.m
			m.ShutdownRequested = v.acpi
			if d := m.Disks[0]; len(d.Load()) > 0 || d.Image != nil {
				m.BootDisk = d
			} else {
				m.BootedFromCD = true
			}
			exit := v.bench.nodes.Guest(&m).Run(ctx, &m)
			v.mu.Lock()
			v.exits = append(v.exits, exit)
			v.mu.Unlock()
			if exit == site.ExitPowerOff {
				return
			}
			if exit == site.ExitHalt {
				<-ctx.Done()
			}
		}
	})
}

// cut cuts the power.
func (v *vm) cut() {
	v.off()
	<-v.done
}

func (v *vm) addr() string { return fmt.Sprintf("10.0.0.%d", v.m.VMID) }

func (v *vm) lastExit() (site.Exit, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.exits) == 0 {
		return 0, false
	}

	return v.exits[len(v.exits)-1], true
}

// cluster is the secrets and configurations of one cluster.
type cluster struct {
	bench  *bench
	bundle *secrets.Bundle
	input  *generate.Input
}

func (b *bench) cluster() *cluster {
	b.t.Helper()
	bundle, err := secrets.NewBundle(secrets.NewClock(), config.TalosVersion1_12)
	require.NoError(b.t, err)

	return b.clusterWith(bundle)
}

func (b *bench) clusterWith(bundle *secrets.Bundle) *cluster {
	b.t.Helper()
	input, err := generate.NewInput("demo", endpoint, "1.35.0",
		generate.WithSecretsBundle(bundle), generate.WithVersionContract(config.TalosVersion1_12),
		generate.WithInstallDisk("/dev/sda"), generate.WithInstallImage(installer+schematicA+":v1.12.4"))
	require.NoError(b.t, err)

	return &cluster{bench: b, bundle: bundle, input: input}
}

// config is a node's configuration, its hostname among it; change may change it.
func (c *cluster) config(role machine.Type, hostname string, change func(*v1alpha1.Config)) []byte {
	c.bench.t.Helper()
	p, err := c.input.Config(role)
	require.NoError(c.bench.t, err)
	p, err = p.PatchV1Alpha1(func(cfg *v1alpha1.Config) error {
		if role == machine.TypeControlPlane {
			cfg.ClusterConfig.APIServerConfig.CertSANs = []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.9"}
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
			return b.net.DialContext(ctx, "tcp", addr)
		}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1, MaxDelay: 20 * time.Millisecond},
			MinConnectTimeout: waitLimit,
		}),
	}
}

// insecure is a client of maintenance mode.
func (b *bench) insecure(v *vm) *client.Client {
	b.t.Helper()
	c, err := client.New(b.ctx, client.WithEndpoints(v.addr()), client.WithGRPCDialOptions(b.dialer()...),
		client.WithTLSConfig(&tls.Config{InsecureSkipVerify: true})) //nolint:gosec // maintenance mode
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = c.Close() })

	return c
}

// client is an administrator of the cluster at one node.
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

func (b *bench) node(v *vm) (talos.NodeStatus, error) {
	for _, n := range b.nodes.Status().Nodes {
		if n.VMID == v.m.VMID {
			return n, nil
		}
	}

	return talos.NodeStatus{}, errors.New("the machine is not running")
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

	return l.buf.Write(p) //nolint:wrapcheck // never fails
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.buf.String()
}

// events are the traced operations of one kind.
func (l *lockedBuffer) events(op string) []site.Event {
	var out []site.Event
	for line := range strings.Lines(l.String()) {
		var e site.Event
		if json.Unmarshal([]byte(line), &e) == nil && e.Op == op {
			out = append(out, e)
		}
	}

	return out
}

func vmAddr(s string) netip.Addr { return netip.MustParseAddr(s) }

// spec is what a node's kubelet registered, once it has.
func (b *bench) spec(name string) talos.NodeSpec {
	b.t.Helper()
	var spec talos.NodeSpec
	b.eventually(name+" is registered", func() (err error) {
		spec, err = b.kube.last().spec(name)

		return err
	})

	return spec
}
