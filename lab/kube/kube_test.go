// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kube_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/talos-proxmox/talos-proxmox/lab/kube"
	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

// speed makes the waits of kubelets short; those of the controllers have lower bounds.
const speed = 60

// binary returns the path of lab-kubernetes, or the test is skipped.
func binary(t *testing.T) string {
	t.Helper()

	path := os.Getenv("LAB_KUBERNETES")
	if path == "" {
		path = filepath.Join("..", "..", "bin", "lab-kubernetes")
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("SKIPPED, %s is missing: run `make tools`, or name it in LAB_KUBERNETES", path)
	}
	path, err := filepath.Abs(path)
	require.NoError(t, err)

	return path
}

// config returns that of a cluster in a folder of the test.
func config(t *testing.T) kube.Config {
	t.Helper()

	ca, caKey := authority(t, "kubernetes")
	aggregatorCA, aggregatorKey := authority(t, "front-proxy")
	account, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)

	return kube.Config{
		Name: "test", Dir: t.TempDir(), Binary: binary(t),
		CACert: ca, CAKey: caKey, AggregatorCACert: aggregatorCA, AggregatorCAKey: aggregatorKey,
		ServiceAccountKey: pem.EncodeToMemory(&pem.Block{
			Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(account),
		}),
		CertSANs: []string{"10.0.0.10", "api.example.com"},
		Version:  "v1.35.0",
		Clock:    guest.Clock{Speed: speed},
	}
}

func authority(t *testing.T, name string) (cert, key []byte) {
	t.Helper()

	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)

	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}

// cluster runs a cluster for one test, with a client.
type cluster struct {
	*kube.Cluster
	kubernetes.Interface
}

func start(t *testing.T, c kube.Config) *cluster {
	t.Helper()

	running, err := kube.Start(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, running.Stop()) })
	client, err := kubernetes.NewForConfig(running.AdminConfig())
	require.NoError(t, err)

	return &cluster{running, client}
}

// run runs a node until ctx ends.
func (c *cluster) run(ctx context.Context, spec kube.NodeSpec) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- c.Cluster.Node(ctx, spec) }()

	return ended
}

func spec(name, address string) kube.NodeSpec {
	return kube.NodeSpec{
		Name: name, Addresses: []netip.Addr{netip.MustParseAddr(address)},
		KubeletVersion: "v1.35.0", OSImage: "Talos (v1.12.4)", KernelVersion: "6.18.2-talos",
		ContainerRuntime: "containerd://2.1.6", CPU: 4, MemoryMiB: 4096,
	}
}

// eventually polls until check finds no fault, and fails with the last fault.
func eventually(t *testing.T, within time.Duration, check func(ctx context.Context) string) {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()

	fault := check(ctx)
	for fault != "" {
		select {
		case <-ctx.Done():
			t.Fatalf("after %s: %s", within, fault)
		case <-tick.C:
		}
		if now := check(ctx); ctx.Err() == nil {
			fault = now
		}
	}
}

// nodeReady tells the Ready condition of a node, its message too when it is false.
func (c *cluster) nodeReady(ctx context.Context, name string) (corev1.ConditionStatus, string) {
	node, err := c.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err.Error()
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status, condition.Message
		}
	}

	return "", "no Ready condition"
}

func (c *cluster) awaitNode(t *testing.T, name string, want corev1.ConditionStatus) {
	t.Helper()

	eventually(t, 30*time.Second, func(ctx context.Context) string {
		status, message := c.nodeReady(ctx, name)
		if status == want {
			return ""
		}

		return "node " + name + " is " + string(status) + ": " + message
	})
}
