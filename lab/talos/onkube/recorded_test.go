// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package onkube_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/talos-proxmox/talos-proxmox/lab/recorded"
	"github.com/talos-proxmox/talos-proxmox/lab/recorded/kubelets"
	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/talos"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/node"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/onkube"
)

var update = flag.Bool("update", false, "rewrite the figures in docs/lab.md; the test then fails, so that somebody looks")

// TestKubeletsAsRecorded plays the scenes with the lab's kubelets that genuine ones have played. What they do otherwise has
// a reason in lab/recorded.
func TestKubeletsAsRecorded(t *testing.T) {
	t.Parallel()
	site := recordedSite(t)
	kept, reasons, err := kubelets.Recorded()
	require.NoError(t, err)
	var table strings.Builder
	table.WriteString("| Part | Compared with | Scene | Values equal |\n|---|---|---|---|\n")
	equal, all := 0, 0
	for _, scene := range site.Scenes() {
		watched, err := scene.Watch(t.Context())
		require.NoError(t, err, scene.Name)
		tree, err := kubelets.Normalize(watched)
		require.NoError(t, err)
		differences, values := kubelets.Compare(kept.Scenes[scene.Name], tree)
		for _, d := range differences {
			assert.NotEmpty(t, reasons.Why(scene.Name, d.Path), "%s, %s\n  kubelet: %s\n  lab:     %s", scene.Name, d.Path, d.Want, d.Got)
		}
		fmt.Fprintf(&table, "| kubelet | kubelet %s | %s | %d of %d |\n", kubelets.Version, scene.Name, values-len(differences), values)
		equal, all = equal+values-len(differences), all+values
	}
	fmt.Fprintf(&table, "| kubelet | kubelet %s | all | %d of %d |\n", kubelets.Version, equal, all)
	if !t.Failed() {
		assertPage(t, table.String())
	}
}

// assertPage compares the table in docs/lab.md with what was compared.
func assertPage(t *testing.T, table string) {
	t.Helper()
	const begin, end = "<!-- compared with kubelets -->\n", "<!-- end -->"
	path := filepath.Join("..", "..", "..", "docs", "lab.md")
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(page), begin)
	require.True(t, ok)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	want := before + begin + table + end + after
	if want == string(page) {
		return
	}
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o600))
	}
	assert.Fail(t, "the figures in docs/lab.md are others", "%s\nrun `go test ./talos/onkube -run TestKubeletsAsRecorded -update` in lab", table)
}

// recordedSite returns a control plane and a worker as genuine Talos had them.
func recordedSite(t *testing.T) kubelets.Site {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	network := guest.NewNet()
	nodes := talos.New(node.Options{Kubernetes: onkube.Kubernetes{Binary: binary(t)}, Dir: t.TempDir()})
	var running sync.WaitGroup
	for i, name := range []string{"n1", "w1"} {
		m := machineAt(network, fmt.Sprintf("10.0.0.%d", i+1))
		m.VMID, m.Name, m.UUID = i+1, name, fmt.Sprintf("uuid-%d", i+1)
		m.NICs[0].MAC = fmt.Sprintf("BC:24:11:00:00:0%d", i+1)
		m.CloudInit.Hostname, m.CloudInit.IPConfigs[0].IPv4 = name, netip.MustParsePrefix(fmt.Sprintf("10.0.0.%d/24", i+1))
		m.BootDisk.Image.Talos = recorded.TalosVersion
		m.Clock = guest.Clock{Speed: 30}
		running.Go(func() {
			for ctx.Err() == nil { // a reboot ends a power cycle
				nodes.Guest(m).Run(ctx, m)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
		assert.NoError(t, nodes.Close())
	})

	input, err := generate.NewInput("demo", "https://10.0.0.1:6443", "1.35.0", generate.WithVersionContract(config.TalosVersion1_12))
	require.NoError(t, err)
	talosconfig, err := input.Talosconfig()
	require.NoError(t, err)
	dialer := client.WithGRPCDialOptions(grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
		return network.DialContext(ctx, "tcp", addr)
	}))
	admins := map[string]*client.Client{}
	for _, place := range []struct {
		name, address string
		role          machinetype.Type
	}{{"n1", "10.0.0.1", machinetype.TypeControlPlane}, {"w1", "10.0.0.2", machinetype.TypeWorker}} {
		insecure, err := client.New(ctx, client.WithEndpoints(place.address), dialer,
			client.WithTLSConfig(&tls.Config{InsecureSkipVerify: true})) // maintenance mode
		require.NoError(t, err)
		data := recordedConfig(t, input, place.role, place.name)
		eventually(t, "apply", func() error {
			_, err := insecure.ApplyConfiguration(ctx, &machine.ApplyConfigurationRequest{Data: data})

			return err
		})
		_ = insecure.Close() // it was for maintenance mode
		admins[place.name], err = client.New(ctx, client.WithConfig(talosconfig), client.WithEndpoints(place.address), dialer)
		require.NoError(t, err)
		t.Cleanup(func() { _ = admins[place.name].Close() })
	}
	eventually(t, "bootstrap", func() error { return admins["n1"].Bootstrap(ctx, &machine.BootstrapRequest{}) })

	return kubelets.Site{
		Client: kubernetesClient(ctx, t, admins["n1"], network), Control: "n1", Worker: "w1", Patience: waitLimit,
		Restart: func(ctx context.Context) error {
			_, err := admins["w1"].ServiceRestart(ctx, "kubelet")

			return err
		},
	}
}

// recordedConfig returns the configuration that genuine nodes had.
func recordedConfig(t *testing.T, input *generate.Input, role machinetype.Type, hostname string) []byte {
	t.Helper()
	cfg, err := input.Config(role)
	require.NoError(t, err)
	cfg, err = cfg.PatchV1Alpha1(func(c *v1alpha1.Config) error {
		yes := true
		c.ClusterConfig.ClusterNetwork.CNI = &v1alpha1.CNIConfig{CNIName: "none"}
		c.ClusterConfig.ProxyConfig = &v1alpha1.ProxyConfig{Disabled: &yes}
		c.ClusterConfig.CoreDNSConfig = &v1alpha1.CoreDNS{CoreDNSDisabled: &yes}

		return nil
	})
	require.NoError(t, err)
	data, err := cfg.Bytes()
	require.NoError(t, err)

	return bytes.Replace(data, []byte("auto: stable"), []byte("auto: \"off\"\nhostname: "+hostname), 1)
}
