// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kube

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// requestCertificate asks for the kubelet's certificate as a kubelet does that joins: with the cluster's bootstrap token. The
// controllers approve and sign it. What becomes of it is no matter here, for the kubelet has a certificate.
func (k *kubelet) requestCertificate(ctx context.Context) error {
	if k.spec.BootstrapToken == "" || k.asked {
		return nil
	}
	config := rest.CopyConfig(k.adminConfig)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:bootstrap:" + k.spec.BootstrapToken,
		Groups:   []string{"system:bootstrappers", "system:bootstrappers:nodes", "system:authenticated"},
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	request, err := certificateRequest("system:node:" + k.spec.Name)
	if err != nil {
		return err
	}
	_, err = client.CertificatesV1().CertificateSigningRequests().Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: request, SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	k.asked = err == nil

	return err // tried again with the registration: its rights may come later
}

func certificateRequest(user string) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: user, Organization: []string{"system:nodes"}},
	}, key)
	if err != nil {
		return nil, err
	}

	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}), nil
}
