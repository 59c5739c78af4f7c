// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package standin_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	talosx509 "github.com/siderolabs/crypto/x509"
	commonapi "github.com/siderolabs/talos/pkg/machinery/api/common"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	storageapi "github.com/siderolabs/talos/pkg/machinery/api/storage"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// fakeNode answers what an apply and a bootstrap ask.
type fakeNode struct {
	machineapi.UnimplementedMachineServiceServer
	storageapi.UnimplementedStorageServiceServer

	mu       sync.Mutex
	applied  []string
	refuse   error
	failures int // bootstraps to fail first

	kubeconfig string
	dry        machineapi.ApplyConfigurationRequest_Mode // what a dry run says
	calls      []string
}

// took returns the calls since it was last asked, without the looks at the disks.
func (n *fakeNode) took() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	defer func() { n.calls = nil }()

	return n.calls
}

// Kubeconfig sends the kubeconfig as Talos does, packed.
func (n *fakeNode) Kubeconfig(_ *emptypb.Empty, stream grpc.ServerStreamingServer[commonapi.Data]) error {
	n.mu.Lock()
	defer n.mu.Unlock()

	n.calls = append(n.calls, "Kubeconfig")
	if n.refuse != nil {
		return n.refuse
	}
	var packed bytes.Buffer
	gz := gzip.NewWriter(&packed)
	archive := tar.NewWriter(gz)
	err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "kubeconfig", Size: int64(len(n.kubeconfig)), Mode: 0o600})
	if err == nil {
		_, err = archive.Write([]byte(n.kubeconfig))
	}
	if err := errors.Join(err, archive.Close(), gz.Close()); err != nil {
		return err
	}

	return stream.Send(&commonapi.Data{Bytes: packed.Bytes()})
}

func (*fakeNode) Disks(context.Context, *emptypb.Empty) (*storageapi.DisksResponse, error) {
	return &storageapi.DisksResponse{Messages: []*storageapi.Disks{{}}}, nil
}

func (n *fakeNode) ApplyConfiguration(
	_ context.Context, r *machineapi.ApplyConfigurationRequest,
) (*machineapi.ApplyConfigurationResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()

	n.calls = append(n.calls, fmt.Sprintf("ApplyConfiguration %s dry run: %t %x", r.GetMode(), r.GetDryRun(), sha256.Sum256(r.GetData())))
	if n.refuse != nil {
		return nil, n.refuse
	}
	if r.GetDryRun() {
		return &machineapi.ApplyConfigurationResponse{Messages: []*machineapi.ApplyConfiguration{{Mode: n.dry}}}, nil
	}
	n.applied = append(n.applied, r.GetMode().String()+" "+string(r.GetData()))

	return &machineapi.ApplyConfigurationResponse{Messages: []*machineapi.ApplyConfiguration{{}}}, nil
}

func (n *fakeNode) Bootstrap(context.Context, *machineapi.BootstrapRequest) (*machineapi.BootstrapResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()

	if n.failures > 0 {
		n.failures--
		return nil, status.Error(codes.FailedPrecondition, "bootstrap is not available yet")
	}

	return &machineapi.BootstrapResponse{Messages: []*machineapi.Bootstrap{{}}}, nil
}

// start serves the node; with a CA it wants client certificates of it, as a configured node does.
func (n *fakeNode) start(t *testing.T, ca *talosx509.PEMEncodedCertificateAndKey) string {
	t.Helper()

	authority, err := talosx509.NewSelfSignedCertificateAuthority(talosx509.Organization("talos"))
	require.NoError(t, err)
	if ca != nil {
		authority, err = talosx509.NewCertificateAuthorityFromCertificateAndKey(ca)
		require.NoError(t, err)
	}
	pair, err := talosx509.NewKeyPair(authority, talosx509.IPAddresses([]net.IP{net.IPv4(127, 0, 0, 1)}),
		talosx509.NotAfter(time.Now().Add(time.Hour)),
		talosx509.ExtKeyUsage([]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}))
	require.NoError(t, err)

	cfg := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*pair.Certificate}}
	if ca != nil {
		cfg.ClientAuth, cfg.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		require.True(t, cfg.ClientCAs.AppendCertsFromPEM(ca.Crt))
	}

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := grpc.NewServer(grpc.Creds(credentials.NewTLS(cfg)))
	machineapi.RegisterMachineServiceServer(s, n)
	storageapi.RegisterStorageServiceServer(s, n)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)

	return l.Addr().String()
}

func talosEngine(t *testing.T) engine {
	t.Helper()

	e := attach(t, serve(t, "talos"))
	require.NoError(t, e.configure(bridge.Tree{}))

	return e
}

// secrets makes machine secrets and returns the whole state.
func (e engine) secrets() resource.PropertyMap {
	e.t.Helper()

	u := urn("talos:machine/secrets:Secrets", "secrets")
	in, problems := e.check(u, bridge.Tree{"talosVersion": "v1.12"}.Properties(), nil)
	require.Empty(e.t, problems)
	id, out, err := e.create(u, in, false)
	require.NoError(e.t, err)
	require.Equal(e.t, "machine_secrets", id)

	return out
}

func TestMachineSecrets(t *testing.T) {
	t.Parallel()

	e := talosEngine(t)
	out := e.secrets()
	u := urn("talos:machine/secrets:Secrets", "secrets")

	certs := out["machineSecrets"].ObjectValue()["certs"].ObjectValue()
	assert.True(t, certs["os"].ObjectValue()["key"].IsSecret(), "a private key is secret")
	assert.False(t, certs["os"].ObjectValue()["cert"].IsSecret(), "a certificate is not")
	assert.True(t, out["clientConfiguration"].ObjectValue()["clientKey"].IsSecret())

	in := bridge.Tree{"talosVersion": "v1.12"}.Properties()
	same := e.diff(u, "machine_secrets", in, out, in)
	assert.Equal(t, pulumirpc.DiffResponse_DIFF_NONE, same.GetChanges())

	raised := e.diff(u, "machine_secrets", in, out, bridge.Tree{"talosVersion": "v1.13"}.Properties())
	assert.Empty(t, raised.GetReplaces(), "a newer version keeps the secrets")
	lowered := e.diff(u, "machine_secrets", in, out, bridge.Tree{"talosVersion": "v1.11"}.Properties())
	assert.Equal(t, []string{"talosVersion"}, lowered.GetReplaces(), "an older version makes new secrets")
}

// machineConfig returns a generated control plane configuration.
func (e engine) machineConfig(secrets resource.PropertyMap) string {
	e.t.Helper()

	out, err := e.invoke("talos:machine/getConfiguration:getConfiguration", bridge.Tree{
		"clusterName": "dev", "clusterEndpoint": "https://10.0.0.10:6443", "machineType": "controlplane",
		"machineSecrets": bridge.TreeOf(secrets).At("machineSecrets"), "talosVersion": "v1.12",
		"kubernetesVersion": "1.35.0", "configPatches": []string{"machine:\n  install:\n    disk: /dev/vda\n"},
	})
	require.NoError(e.t, err)

	return out.Str("machineConfiguration")
}

func TestConfigurationIsGeneratedOffline(t *testing.T) {
	t.Parallel()

	e := talosEngine(t)
	secrets := e.secrets()

	text := e.machineConfig(secrets)
	cfg, err := configloader.NewFromBytes([]byte(text))
	require.NoError(t, err)
	assert.Equal(t, "/dev/vda", cfg.Machine().Install().Disk())
	assert.Equal(t, "ghcr.io/siderolabs/installer:v1.12.0", cfg.Machine().Install().Image())
	assert.Equal(t, text, e.machineConfig(secrets), "the same inputs give the same configuration")

	out, err := e.invoke("talos:client/getConfiguration:getConfiguration", bridge.Tree{
		"clusterName": "dev", "clientConfiguration": bridge.TreeOf(secrets).At("clientConfiguration"),
		"endpoints": []string{"10.0.0.1"},
	})
	require.NoError(t, err)
	assert.Contains(t, out.Str("talosConfig"), "- 10.0.0.1")

	urls, err := e.invoke("talos:imageFactory/getUrls:getUrls", bridge.Tree{
		"schematicId": "abc", "talosVersion": "v1.12.4", "platform": "nocloud",
	})
	require.NoError(t, err)
	assert.Equal(t, "https://factory.talos.dev/image/abc/v1.12.4/nocloud-amd64.iso", urls.Str("urls.iso"))
	assert.Equal(t, "factory.talos.dev/nocloud-installer/abc:v1.12.4", urls.Str("urls.installer"))

	_, err = e.invoke("talos:machine/getConfiguration:getConfiguration", bridge.Tree{
		"clusterName": "dev", "clusterEndpoint": "10.0.0.10", "machineType": "worker",
		"machineSecrets": bridge.TreeOf(secrets).At("machineSecrets"),
	})
	assert.ErrorContains(t, err, "no scheme specified for the cluster endpoint URL\ntry: \"https://10.0.0.10:6443\"")
}

func TestApplyAndBootstrap(t *testing.T) {
	t.Parallel()

	e := talosEngine(t)
	secrets := e.secrets()
	config := e.machineConfig(secrets)

	crt := bridge.TreeOf(secrets)
	ca := &talosx509.PEMEncodedCertificateAndKey{
		Crt: unbase64(t, crt.Str("machineSecrets.certs.os.cert")), Key: unbase64(t, crt.Str("machineSecrets.certs.os.key")),
	}

	for name, authority := range map[string]*talosx509.PEMEncodedCertificateAndKey{"maintenance": nil, "configured": ca} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			n := &fakeNode{failures: 1}
			address := n.start(t, authority)
			u := urn("talos:machine/configurationApply:ConfigurationApply", "cp1")
			in := resource.PropertyMap{
				"clientConfiguration": secrets["clientConfiguration"], "node": resource.NewProperty("127.0.0.1"),
				"endpoint": resource.NewProperty(address), "machineConfigurationInput": resource.NewProperty(config),
			}
			in, problems := e.check(u, in, nil)
			require.Empty(t, problems)

			_, planned, err := e.create(u, in, true)
			require.NoError(t, err)
			assert.Equal(t, "auto", planned["resolvedApplyMode"].StringValue())

			_, out, err := e.create(u, in, false)
			require.NoError(t, err)
			require.Len(t, n.applied, 1)
			assert.True(t, strings.HasPrefix(n.applied[0], "AUTO version: v1alpha1"))
			assert.True(t, out["machineConfiguration"].IsSecret())

			b := urn("talos:machine/bootstrap:Bootstrap", "bootstrap")
			_, _, err = e.create(b, resource.PropertyMap{
				"clientConfiguration": secrets["clientConfiguration"], "node": resource.NewProperty("127.0.0.1"),
				"endpoint": resource.NewProperty(address),
			}, false)
			require.NoError(t, err, "a bootstrap that is too early is repeated")

			n.mu.Lock()
			n.refuse = status.Error(codes.InvalidArgument, "configuration validation failed: no disk")
			n.mu.Unlock()
			_, err = e.update(u, "machine_configuration_apply", in, out, in)
			require.ErrorContains(t, err, "Error applying configuration: rpc error: code = InvalidArgument desc = "+
				"configuration validation failed: no disk")
			assert.NotContains(t, err.Error(), "BEGIN", "errors hold no keys")
		})
	}
}

func unbase64(t *testing.T, s string) []byte {
	t.Helper()

	b, err := base64.StdEncoding.DecodeString(s)
	require.NoError(t, err)

	return b
}
