// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package onkube_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/talos"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/node"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/onkube"
)

const waitLimit = 90 * time.Second

// binary returns lab-kubernetes, without which there is nothing to test.
func binary(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../../bin/lab-kubernetes")
	require.NoError(t, err)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		t.Skip("skipped: bin/lab-kubernetes is not built (make tools)")
	}

	return path
}

func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	var err error
	for start := time.Now(); time.Since(start) < waitLimit; {
		if err = check(); err == nil {
			return
		}
		<-time.After(50 * time.Millisecond)
	}
	require.NoError(t, err, what)
}

// machineAt returns a machine with a disk image, so that it needs no installation.
func machineAt(network *guest.Net, address string) *guest.Machine {
	var mu sync.Mutex
	var content []byte
	image := &guest.Image{Talos: "v1.12.4", Platform: "nocloud", Arch: "amd64", Kind: "disk"}
	disk := &guest.Disk{
		Device: "scsi0", Size: 20 << 30, Image: image,
		Load: func() []byte {
			mu.Lock()
			defer mu.Unlock()

			return bytes.Clone(content)
		},
		Store: func(b []byte) error {
			mu.Lock()
			defer mu.Unlock()
			content = bytes.Clone(b)

			return nil
		},
	}

	return &guest.Machine{
		Host: "pve", VMID: 1, Name: "cp", UUID: "u", MemoryMiB: 4096, Cores: 2, CPUType: "host",
		NICs: []guest.NIC{{MAC: "BC:24:11:00:00:01"}}, Disks: []*guest.Disk{disk}, BootDisk: disk,
		CloudInit: &guest.CloudInit{Hostname: "cp", IPConfigs: []guest.IPConfig{{IPv4: netip.MustParsePrefix(address + "/24")}}},
		Net:       network, Clock: guest.Clock{Speed: 100}, Trace: guest.NewTrace(nil),
	}
}

// bootstrapped returns a cluster of one node: its administrators of Talos and of Kubernetes.
func bootstrapped(t *testing.T) (context.Context, *client.Client, kubernetes.Interface) {
	t.Helper()
	path := binary(t)
	ctx, cancel := context.WithCancel(context.Background())
	network := guest.NewNet()
	extra := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra, namespace: demo-inline}\n"))
	}))
	t.Cleanup(extra.Close)

	nodes := talos.New(node.Options{
		Kubernetes: onkube.Kubernetes{Binary: path}, Dir: t.TempDir(), HTTPClient: extra.Client(),
	})
	m := machineAt(network, "10.0.0.1")
	done := make(chan struct{})
	go func() {
		defer close(done)
		nodes.Guest(m).Run(ctx, m)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		assert.NoError(t, nodes.Close())
	})

	admin := start(ctx, t, network, m, extra.URL)

	return ctx, admin, kubernetesClient(ctx, t, admin, network)
}

func TestBootstrapEndsInAReadyCluster(t *testing.T) {
	t.Parallel()
	ctx, admin, api := bootstrapped(t)

	eventually(t, "the Node is ready", func() error {
		n, err := api.CoreV1().Nodes().Get(ctx, "cp", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				return nil
			}
		}

		return fmt.Errorf("conditions are %v", n.Status.Conditions)
	})
	eventually(t, "CoreDNS is available", func() error {
		d, err := api.AppsV1().Deployments("kube-system").Get(ctx, "coredns", metav1.GetOptions{})
		if err == nil && d.Status.AvailableReplicas != 2 {
			err = fmt.Errorf("%d replicas are available", d.Status.AvailableReplicas)
		}

		return err
	})
	eventually(t, "inline and extra manifests are there", func() error {
		_, err := api.CoreV1().ConfigMaps("demo-inline").Get(ctx, "extra", metav1.GetOptions{})

		return err
	})
	_, err := api.CoreV1().Pods("kube-system").Get(ctx, "kube-apiserver-cp", metav1.GetOptions{})
	require.NoError(t, err, "static pods are mirrored")

	snapshot, err := admin.EtcdSnapshot(ctx, &machine.EtcdSnapshotRequest{})
	require.NoError(t, err)
	content, err := io.ReadAll(snapshot)
	require.NoError(t, err)
	assert.Greater(t, len(content), 1<<10)
}

// Talos has PodSecurity enforce "baseline" in every namespace but kube-system.
func TestPitfallPrivilegedPodIsRefused(t *testing.T) {
	t.Parallel()
	ctx, _, api := bootstrapped(t)

	yes := true
	pod := func(namespace string) error {
		_, err := api.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "csi"},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "csi", Image: "example.com/csi:1", SecurityContext: &corev1.SecurityContext{Privileged: &yes},
			}}},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})

		return err
	}
	eventually(t, "service accounts are there", func() error {
		_, err := api.CoreV1().ServiceAccounts("kube-system").Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			_, err = api.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		}

		return err
	})
	require.ErrorContains(t, pod("default"), `violates PodSecurity "baseline:latest": privileged (container "csi" must not set `+
		`securityContext.privileged=true)`)
	require.NoError(t, pod("kube-system"))
}

// start applies a single control plane's configuration and bootstraps it.
func start(ctx context.Context, t *testing.T, network *guest.Net, m *guest.Machine, extra string) *client.Client {
	t.Helper()
	input, err := generate.NewInput("demo", "https://10.0.0.1:6443", "1.35.0",
		generate.WithVersionContract(config.TalosVersion1_12), generate.WithAllowSchedulingOnControlPlanes(true))
	require.NoError(t, err)
	cfg, err := input.Config(machinetype.TypeControlPlane)
	require.NoError(t, err)
	cfg, err = cfg.PatchV1Alpha1(func(c *v1alpha1.Config) error {
		c.ClusterConfig.ExtraManifests = []string{extra}
		c.ClusterConfig.ClusterInlineManifests = v1alpha1.ClusterInlineManifests{{
			InlineManifestName:     "namespace",
			InlineManifestContents: "apiVersion: v1\nkind: Namespace\nmetadata: {name: demo-inline}\n",
		}}

		return nil
	})
	require.NoError(t, err)
	data, err := cfg.Bytes()
	require.NoError(t, err)
	data = bytes.Replace(data, []byte("auto: stable"), []byte("auto: \"off\"\nhostname: cp"), 1)

	dialer := client.WithGRPCDialOptions(grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
		return network.DialContext(ctx, "tcp", addr)
	}))
	insecure, err := client.New(ctx, client.WithEndpoints("10.0.0.1"), dialer,
		client.WithTLSConfig(&tls.Config{InsecureSkipVerify: true})) // maintenance mode
	require.NoError(t, err)
	t.Cleanup(func() { _ = insecure.Close() })
	eventually(t, "apply", func() error {
		_, err := insecure.ApplyConfiguration(ctx, &machine.ApplyConfigurationRequest{Data: data})

		return err
	})

	talosconfig, err := input.Talosconfig()
	require.NoError(t, err)
	admin, err := client.New(ctx, client.WithConfig(talosconfig), client.WithEndpoints("10.0.0.1"), dialer)
	require.NoError(t, err)
	t.Cleanup(func() { _ = admin.Close() })
	eventually(t, "bootstrap", func() error { return admin.Bootstrap(ctx, &machine.BootstrapRequest{}) })

	return admin
}

// kubernetesClient uses the kubeconfig that the node hands out, through the site's network.
func kubernetesClient(ctx context.Context, t *testing.T, admin *client.Client, network *guest.Net) kubernetes.Interface {
	t.Helper()
	stream, err := admin.KubeconfigRaw(ctx)
	require.NoError(t, err)
	zr, err := gzip.NewReader(stream)
	require.NoError(t, err)
	tr := tar.NewReader(zr)
	_, err = tr.Next()
	require.NoError(t, err)
	content, err := io.ReadAll(tr)
	require.NoError(t, err)

	rest, err := clientcmd.RESTConfigFromKubeConfig(content)
	require.NoError(t, err)
	assert.Equal(t, "https://10.0.0.1:6443", rest.Host)
	rest.Dial = network.DialContext
	api, err := kubernetes.NewForConfig(rest)
	require.NoError(t, err)

	return api
}
