// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kube

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// The files of a cluster's folder, relative to it.
const (
	configFile         = "control-plane.json"
	logFile            = "control-plane.log"
	restoreFile        = "restore"
	pkiDir             = "pki"
	caFile             = "pki/ca.crt"
	caKeyFile          = "pki/ca.key"
	clientCAFile       = "pki/client-ca.crt"
	aggregatorCAFile   = "pki/aggregator-ca.crt"
	serviceAccountFile = "pki/service-account.key"
	encryptionFile     = "pki/encryption.yaml"
	auditPolicyFile    = "pki/audit-policy.yaml"
	admissionFile      = "pki/admission.yaml"

	apiServer         = "pki/apiserver"
	frontProxy        = "pki/front-proxy-client"
	controllerManager = "pki/controller-manager"
	scheduler         = "pki/scheduler"

	certSuffix       = ".crt"
	keySuffix        = ".key"
	kubeconfigSuffix = ".kubeconfig"
)

// writeFiles writes everything that the control plane reads and returns the cluster's CA.
func writeFiles(c Config) (*authority, error) {
	ca, err := newAuthority(c.CACert, c.CAKey)
	if err != nil {
		return nil, fmt.Errorf("cluster CA: %w", err)
	}
	aggregator, err := newAuthority(c.AggregatorCACert, c.AggregatorCAKey)
	if err != nil {
		return nil, fmt.Errorf("aggregator CA: %w", err)
	}

	files := map[string][]byte{
		caFile:             c.CACert,
		caKeyFile:          c.CAKey,
		clientCAFile:       slices.Concat(c.CACert, []byte("\n"), c.AcceptedCAs),
		aggregatorCAFile:   c.AggregatorCACert,
		serviceAccountFile: c.ServiceAccountKey,
		encryptionFile:     c.EncryptionConfig,
		auditPolicyFile:    c.AuditPolicy,
		admissionFile:      c.AdmissionConfig,
		restoreFile:        c.Restore,
	}
	sans, err := servingNames(c)
	if err != nil {
		return nil, err
	}
	for _, issue := range []struct {
		path string
		run  func() (cert, key []byte, err error)
	}{
		{apiServer, func() ([]byte, []byte, error) { return ca.server("kube-apiserver", sans) }},
		{frontProxy, func() ([]byte, []byte, error) { return aggregator.client("front-proxy-client", "") }},
	} {
		if files[issue.path+certSuffix], files[issue.path+keySuffix], err = issue.run(); err != nil {
			return nil, err
		}
	}
	for path, user := range map[string]string{
		controllerManager: "system:kube-controller-manager", scheduler: "system:kube-scheduler",
	} {
		// The strongest group spares the controllers a service account and a connection each.
		if files[path+kubeconfigSuffix], err = ca.kubeconfig(user, "system:masters"); err != nil {
			return nil, err
		}
	}
	if files[configFile], err = processConfig(c); err != nil {
		return nil, err
	}

	if err := os.MkdirAll(filepath.Join(c.Dir, pkiDir), 0o700); err != nil {
		return nil, fmt.Errorf("creating its folder: %w", err)
	}
	for name, content := range files {
		if len(content) == 0 {
			continue
		}
		if err := os.WriteFile(filepath.Join(c.Dir, name), content, 0o600); err != nil {
			return nil, fmt.Errorf("writing its files: %w", err)
		}
	}

	return ca, nil
}

// processConfig returns what lab-kubernetes reads.
func processConfig(c Config) ([]byte, error) {
	restore := ""
	if c.Restore != nil {
		restore = restoreFile
	}

	return json.MarshalIndent(map[string]any{
		"listen":            "127.0.0.1:0",
		"version":           c.Version,
		"restore":           restore,
		"apiServer":         apiServerArgs(c),
		"controllerManager": controllerManagerArgs(c),
		"scheduler":         schedulerArgs(),
	}, "", "  ")
}

// servingNames returns the names under which the API server is reached.
func servingNames(c Config) ([]string, error) {
	names := []string{
		"localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc." + c.DNSDomain,
	}
	for _, cidr := range c.ServiceCIDRs {
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil {
			return nil, fmt.Errorf("service network: %w", err)
		}
		names = append(names, prefix.Masked().Addr().Next().String())
	}

	return append(names, c.CertSANs...), nil
}

// kubeconfig returns that of a client; the address comes from the command line.
func (a *authority) kubeconfig(user, group string) ([]byte, error) {
	cert, key, err := a.client(user, group)
	if err != nil {
		return nil, err
	}

	const name = "lab"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   "https://" + net.JoinHostPort("127.0.0.1", "6443"),
		CertificateAuthorityData: a.certPEM,
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name

	return clientcmd.Write(*config)
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d.Seconds())) }
