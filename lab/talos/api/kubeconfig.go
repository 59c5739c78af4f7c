// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package api

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	stdx509 "crypto/x509"
	"fmt"
	"time"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"
)

// Kubeconfig streams an administrator's kubeconfig inside a tar.gz.
func (s *machineServer) Kubeconfig(_ *emptypb.Empty, out grpc.ServerStreamingServer[common.Data]) error {
	if err := s.controlPlaneOnly("kubeconfig"); err != nil {
		return err
	}
	content, err := adminKubeconfig(s.node.Config())
	if err != nil {
		return err
	}
	packed, err := packFile("kubeconfig", content)
	if err != nil {
		return err
	}

	return out.Send(&common.Data{Bytes: packed}) // the caller's own stream
}

// adminKubeconfig issues an administrator's certificate from the cluster's authority.
func adminKubeconfig(cfg config.Provider) ([]byte, error) {
	ca, err := x509.NewCertificateAuthorityFromCertificateAndKey(machineconfig.KubernetesCA(cfg))
	if err != nil {
		return nil, fmt.Errorf("error getting Kubernetes CA: %w", err)
	}

	admin := cfg.Cluster().AdminKubeconfig()
	pair, err := x509.NewKeyPair(ca,
		x509.CommonName(admin.CommonName()), x509.Organization(admin.CertOrganization()),
		x509.NotBefore(time.Now().Add(-time.Minute)), x509.NotAfter(time.Now().Add(admin.CertLifetime())),
		x509.KeyUsage(stdx509.KeyUsageDigitalSignature|stdx509.KeyUsageKeyEncipherment),
		x509.ExtKeyUsage([]stdx509.ExtKeyUsage{stdx509.ExtKeyUsageClientAuth}),
	)
	if err != nil {
		return nil, fmt.Errorf("error generating admin certificate: %w", err)
	}

	accepted := bytes.Clone(machineconfig.KubernetesCA(cfg).Crt)
	for _, a := range cfg.K8sAPIServerCAConfig().AcceptedCAs() {
		accepted = append(append(accepted, '\n'), a.Crt...)
	}
	name := machineconfig.ClusterName(cfg)
	user := "admin@" + name
	out := clientcmdapi.NewConfig()
	out.Clusters[name] = &clientcmdapi.Cluster{
		Server: machineconfig.Endpoint(cfg).String(), CertificateAuthorityData: accepted,
	}
	out.AuthInfos[user] = &clientcmdapi.AuthInfo{
		ClientCertificateData: pair.CrtPEM, ClientKeyData: pair.KeyPEM,
	}
	out.Contexts[user] = &clientcmdapi.Context{Cluster: name, AuthInfo: user, Namespace: "default"}
	out.CurrentContext = user

	content, err := clientcmd.Write(*out)
	if err != nil {
		return nil, fmt.Errorf("encoding the kubeconfig: %w", err)
	}

	return content, nil
}

// packFile returns a tar.gz with one file.
func packFile(name string, content []byte) ([]byte, error) {
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	tw := tar.NewWriter(zw)

	err := tw.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), ModTime: time.Now(), Mode: 0o600,
	})
	if err == nil {
		_, err = tw.Write(content)
	}
	if err == nil {
		err = tw.Close()
	}
	if err == nil {
		err = zw.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("packing %s: %w", name, err)
	}

	return buf.Bytes(), nil
}
