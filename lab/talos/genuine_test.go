// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	configmeta "github.com/siderolabs/talos/pkg/machinery/config/types/meta"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/nethelpers"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"github.com/stretchr/testify/require"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"

	"github.com/talos-proxmox/talos-proxmox/lab/recorded"
	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

var (
	genuine = flag.String("genuine", "", "folder of genuine Talos and talos-nodes: the lab is compared with nodes that run now, too")
	record  = flag.Bool("record", false, "with -genuine: keep its answers in lab/recorded")
)

const (
	// genuineLimit bounds how long genuine Talos may take to answer; what takes longer hangs.
	genuineLimit = 4 * time.Second
	// genuinePatience bounds how long genuine Talos may take to reach a state.
	genuinePatience = 3 * time.Minute
	// genuineRegistry has etcd's image, and leads nowhere else.
	genuineRegistry = "http://10.0.0.254:5000"
)

// genuineTalos holds nodes of genuine Talos, which answer on the addresses that the lab's nodes have.
type genuineTalos struct {
	*bench
	// cluster is that of the node n1, once everything was asked.
	cluster *cluster
	answers map[string][]recorded.Answer
}

// startGenuine starts genuine nodes, which end with the test, however it ends.
func startGenuine(t *testing.T) *genuineTalos {
	t.Helper()
	dir, err := filepath.Abs(*genuine)
	require.NoError(t, err)
	nodes := exec.Command(filepath.Join(dir, "talos-nodes"), dir, "n1=10.0.0.1", "w1=10.0.0.2", "r1=10.0.0.3")
	nodes.Stderr = os.Stderr
	stop, err := nodes.StdinPipe()
	require.NoError(t, err)
	out, err := nodes.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, nodes.Start())
	t.Cleanup(func() {
		_ = stop.Close()
		require.NoError(t, nodes.Wait())
	})
	socket, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, "genuine Talos did not start")

	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	dial := func(ctx context.Context, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, "unix", strings.TrimSpace(socket))
		if err == nil {
			_, err = io.WriteString(c, address+"\n")
		}

		return c, err
	}

	return &genuineTalos{bench: &bench{t: t, ctx: ctx, dial: dial}, answers: make(map[string][]recorded.Answer)}
}

func (g *genuineTalos) node(id int) *vm { return &vm{bench: g.bench, m: guest.Machine{VMID: id}} }

// config returns the configuration of a node in the genuine site.
func (g *genuineTalos) config(c *cluster, role machine.Type, name string) []byte {
	yes := true

	return c.config(role, name, func(cfg *v1alpha1.Config) {
		cfg.MachineConfig.MachineNetwork = nil // no address is shared
		cfg.MachineConfig.MachineTime = &v1alpha1.TimeConfig{TimeDisabled: &yes}
		mirror := &v1alpha1.RegistryMirrorConfig{MirrorEndpoints: []string{genuineRegistry}}
		cfg.MachineConfig.MachineRegistries.RegistryMirrors = map[string]*v1alpha1.RegistryMirrorConfig{
			"registry.k8s.io": mirror, "ghcr.io": mirror, "example.com": mirror,
		}
		cfg.MachineConfig.MachineKubelet.KubeletExtraConfig = genuineKubelet()
	})
}

// genuineKubelet configures a kubelet for a machine that may have cgroup v1 alone.
func genuineKubelet() configmeta.Unstructured {
	return configmeta.Unstructured{Object: map[string]any{"failCgroupV1": false}}
}

// await waits until a check passes.
func (g *genuineTalos) await(what string, check func(context.Context) error) {
	g.t.Helper()
	var err error
	for start := time.Now(); time.Since(start) < genuinePatience; time.Sleep(500 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(g.ctx, 5*time.Second)
		err = check(ctx)
		cancel()
		if err == nil {
			return
		}
	}
	require.NoError(g.t, err, "genuine Talos: %s", what)
}

// apply configures a node in maintenance mode.
func (g *genuineTalos) apply(v *vm, data []byte) {
	g.t.Helper()
	c := g.insecure(v)
	g.await("configuring", func(ctx context.Context) error {
		_, err := c.ApplyConfiguration(ctx, &machineapi.ApplyConfigurationRequest{Data: data})

		return err
	})
}

// awaitService waits for a state of a service.
func (g *genuineTalos) awaitService(c *client.Client, id string, reached func(*machineapi.ServiceInfo) bool) {
	g.t.Helper()
	g.await(id, func(ctx context.Context) error {
		infos, err := c.ServiceInfo(ctx, id)
		if err != nil {
			return err
		}
		if len(infos) == 0 {
			return errors.New("there is no such service")
		}
		if s := infos[0].Service; !reached(s) {
			return fmt.Errorf("service %s is %s: %v", id, s.GetState(), s.GetEvents())
		}

		return nil
	})
}

func healthy(s *machineapi.ServiceInfo) bool { return s.GetHealth().GetHealthy() }

// awaitPrepared waits for a control plane that waits for its bootstrap.
func (g *genuineTalos) awaitPrepared(c *client.Client) {
	g.t.Helper()
	for _, id := range []string{"apid", "trustd", "cri"} {
		g.awaitService(c, id, healthy)
	}
	g.awaitService(c, "etcd", func(s *machineapi.ServiceInfo) bool { return s.GetState() == "Preparing" })
	// Its image is there once it is bootstrapped; what comes before a bootstrap is over after a moment.
	time.Sleep(5 * time.Second)
}

// ask asks all that was asked in a state.
func (g *genuineTalos) ask(state string, c *client.Client) {
	g.t.Helper()
	fmt.Printf("asking genuine Talos: %s\n", stateNames[state])
	questions, err := recorded.Talos(state)
	require.NoError(g.t, err)
	for _, q := range questions {
		a := recorded.Answer{Call: q.Call}
		for _, line := range ask(g.ctx, c, q.Call, genuineLimit) {
			if line = strings.TrimSpace(line); line != "" {
				a.Lines = append(a.Lines, line)
			}
		}
		g.answers[state] = append(g.answers[state], a)
		if q.Call == "Bootstrap" && strings.HasPrefix(a.Lines[0], "OK") {
			g.awaitService(c, "etcd", healthy)
		}
	}
}

// askEverything takes the nodes through all states, and asks in each.
func (g *genuineTalos) askEverything() {
	g.t.Helper()
	n1, w1, r1 := g.node(1), g.node(2), g.node(3)
	c := g.clusterAt("https://10.0.0.1:6443", newSecrets())
	other := g.clusterAt("https://10.0.0.3:6443", newSecrets())
	g.cluster = c

	insecure := g.insecure(n1)
	g.await("maintenance mode", func(ctx context.Context) error {
		addresses, err := safe.StateListAll[*network.AddressStatus](ctx, insecure.COSI)
		if err != nil {
			return err
		}
		for a := range addresses.All() { // the kernel asks around first whether somebody has the address
			if a.TypedSpec().Flags&nethelpers.AddressFlags(nethelpers.AddressTentative) != 0 {
				return fmt.Errorf("address %s is tentative", a.TypedSpec().Address)
			}
		}

		return nil
	})
	g.ask("maintenance", insecure)
	alone := bytes.Replace(g.config(other, machine.TypeControlPlane, "n1"), []byte("ghcr.io:"), []byte("example.org:"), 1)
	g.apply(r1, alone) // without a kubelet, as the node whose answers are kept
	g.apply(n1, g.config(c, machine.TypeControlPlane, "n1"))
	g.awaitPrepared(c.client(n1))
	g.awaitService(c.client(n1), "kubelet", healthy)
	for state, r := range map[string]role.Role{
		"reader": role.Reader, "operator": role.Operator, "etcdbackup": role.EtcdBackup, "nonsense": "os:nonsense",
	} {
		g.ask(state, c.as(n1, r))
	}
	g.awaitPrepared(other.client(r1))
	g.ask("refusals", other.client(r1))

	g.await("bootstrap", func(ctx context.Context) error { return c.client(n1).Bootstrap(ctx, &machineapi.BootstrapRequest{}) })
	g.awaitService(c.client(n1), "etcd", healthy)
	g.apply(w1, g.config(c, machine.TypeWorker, "w1"))
	for _, id := range []string{"apid", "cri", "kubelet"} {
		g.awaitService(c.client(w1), id, healthy)
	}
	g.awaitService(c.client(n1), "kubelet", healthy)
	g.watchKubelets(c, n1, w1)
	g.awaitReady(c.client(n1))
	g.ask("controlplane", c.client(n1))
	g.awaitService(c.client(w1), "kubelet", healthy)
	g.awaitReady(c.client(w1))
	g.ask("worker", c.client(w1))
}

// awaitReady waits until a node says of itself that it is ready.
func (g *genuineTalos) awaitReady(c *client.Client) {
	g.t.Helper()
	g.await("readiness", func(ctx context.Context) error {
		s, err := safe.StateGetByID[*runtime.MachineStatus](ctx, c.COSI, runtime.MachineStatusID)
		if err == nil && !s.TypedSpec().Status.Ready {
			err = fmt.Errorf("unmet: %v", s.TypedSpec().Status.UnmetConditions)
		}

		return err
	})
}

// answered returns what genuine Talos answers now, by state. What it answers otherwise than it is recorded is printed.
func (g *genuineTalos) answered(t *testing.T) func(string) ([]recorded.Answer, error) {
	t.Helper()
	if *record {
		for state, answers := range g.answers {
			if !recorded.InContainer(state) {
				continue // its recording is of a VM, which shows more
			}
			require.NoError(t, os.WriteFile(filepath.Join("..", "recorded", "talos-"+recorded.TalosVersion, state+".txt"),
				[]byte(recorded.Format(provenance(t), answers)), 0o600))
		}
	}

	return func(state string) ([]recorded.Answer, error) {
		kept, err := recorded.Talos(state)
		if err != nil {
			return nil, err
		}
		accepted, err := recorded.Accepted(state)
		for i, a := range g.answers[state] {
			if recorded.InContainer(state) && recorded.Reason(accepted, a.Call) == "" && !kept[i].Equal(a.Lines) {
				fmt.Printf("%s, %s: Talos itself answered otherwise when it was recorded\n  then: %s\n  now:  %s\n",
					state, a.Call, cut(kept[i].Lines), cut(a.Lines))
			}
		}

		return g.answers[state], err
	}
}

// provenance says how answers came.
func provenance(t *testing.T) string {
	t.Helper()
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	require.NoError(t, err)

	return fmt.Sprintf("Talos %s in container mode, by make genuine-talos on %s, Linux %s",
		recorded.TalosVersion, time.Now().UTC().Format(time.DateOnly), strings.TrimSpace(string(kernel)))
}
