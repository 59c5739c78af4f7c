// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talossecrets

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Authorities holds fingerprints of a cluster's certificate authorities and of its other secrets, which may be shown.
type Authorities struct {
	// Talos and Kubernetes are those of the authorities that issue.
	Talos      string `json:"talos"`
	Kubernetes string `json:"kubernetes"`
	// AcceptedTalos and AcceptedKubernetes are those of authorities that are trusted beside them, with spaces between.
	AcceptedTalos      string `json:"acceptedTalos"`
	AcceptedKubernetes string `json:"acceptedKubernetes"`
	// Others is that of all other secrets together, which are too many bits to guess.
	Others string `json:"others"`
}

// AuthoritiesOf returns the fingerprints of a bundle and of what the stack file has nodes accept.
func AuthoritiesOf(b *secrets.Bundle, c spec.Cluster) (Authorities, error) {
	var others []byte
	for _, part := range []any{b.Cluster, b.Secrets, b.TrustdInfo, b.Certs.Etcd, b.Certs.K8sAggregator, b.Certs.K8sServiceAccount} {
		text, err := json.Marshal(part)
		if err != nil {
			return Authorities{}, fmt.Errorf("reading the cluster's secrets: %w", err)
		}
		others = append(append(others, text...), '\n')
	}

	return Authorities{
		Talos: fingerprintOfCA(b.Certs.OS.Crt), Kubernetes: fingerprintOfCA(b.Certs.K8s.Crt), Others: fingerprint(others),
		AcceptedTalos: fingerprintsOf(c.AcceptedTalosCAs()), AcceptedKubernetes: fingerprintsOf(c.AcceptedKubernetesCAs()),
	}, nil
}

// fingerprintsOf returns the fingerprints of certificates.
func fingerprintsOf(certificates []spec.Text) string {
	var all []string
	for _, text := range certificates {
		all = append(all, fingerprintOfCA([]byte(text)))
	}

	return strings.Join(all, " ")
}

// fingerprintOfCA returns the fingerprint of the first certificate in PEM.
func fingerprintOfCA(text []byte) string {
	block, _ := pem.Decode(text)
	if block == nil {
		return ""
	}

	return fingerprint(block.Bytes)
}

func fingerprint(text []byte) string {
	sum := sha256.Sum256(text)

	return hex.EncodeToString(sum[:8])
}

// RefuseRotation refuses secrets with which the nodes would be out of reach of each other or of us. An authority is
// rotated in three runs: all nodes accept the next one; the next one issues, and all accept the one before; that goes.
func RefuseRotation(was, now Authorities) error {
	if was.Others != "" && now.Others != "" && was.Others != now.Others {
		return errors.New("cluster.secretsBundle: of the secrets that the cluster was made with only certs.os and certs.k8s can be rotated: " +
			"with other ones its nodes would not find together any more; write the earlier bundle again")
	}
	for _, ca := range []struct {
		setting, cert, was, now string
		accepted, accepts       string
	}{
		{"talos", "os", was.Talos, now.Talos, was.AcceptedTalos, now.AcceptedTalos},
		{"kubernetes", "k8s", was.Kubernetes, now.Kubernetes, was.AcceptedKubernetes, now.AcceptedKubernetes},
	} {
		switch {
		case ca.was == "" || ca.now == "" || ca.was == ca.now:
		case !slices.Contains(strings.Fields(ca.accepted), ca.now):
			return fmt.Errorf("cluster.secretsBundle: certs.%s is an authority that the nodes do not accept yet, so that they would be cut off: "+
				"write the earlier bundle again, with the certificate of the next authority under cluster.acceptedCAs.%s, and run `pulumi up`; "+
				"then edit the bundle", ca.cert, ca.setting)
		case !slices.Contains(strings.Fields(ca.accepts), ca.was):
			return fmt.Errorf("cluster.secretsBundle: certs.%s is another authority, and nodes would be cut off until all have it: write the "+
				"certificate of the one before under cluster.acceptedCAs.%s, and take it out in a run of its own", ca.cert, ca.setting)
		}
	}

	return nil
}

// AcceptedToken returns a text that changes when other authorities are accepted; empty while there are none.
func AcceptedToken(c spec.Cluster) string {
	return strings.TrimSpace(fingerprintsOf(c.AcceptedTalosCAs()) + " " + fingerprintsOf(c.AcceptedKubernetesCAs()))
}

// WithAccepted returns the certificate of the authority of the Talos API, base64 of PEM, with those of the accepted ones.
func WithAccepted(ca string, accepted []spec.Text) (string, error) {
	all, err := base64.StdEncoding.DecodeString(ca)
	if err != nil {
		return "", fmt.Errorf("reading the authority of the Talos API: %w", err)
	}
	for _, one := range accepted {
		all = append(append(all, '\n'), strings.TrimSpace(string(one))...)
	}

	return base64.StdEncoding.EncodeToString(append(all, '\n')), nil
}
