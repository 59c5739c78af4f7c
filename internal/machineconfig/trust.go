// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig

import (
	"errors"
	"net/url"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config/types/security"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
)

// addTrust adds certificate authorities that the node trusts.
func (r *builder) addTrust() error {
	for _, name := range sortedKeys(r.cfg.Talos.TrustedRoots) {
		doc := security.NewTrustedRootsConfigV1Alpha1()
		doc.MetaName = name
		doc.Certificates = string(r.cfg.Talos.TrustedRoots[name])
		r.add(doc)
	}
	for _, ca := range r.cfg.Cluster.AcceptedTalosCAs() {
		r.machine.MachineAcceptedCAs = append(r.machine.MachineAcceptedCAs, &x509.PEMEncodedCertificate{Crt: []byte(ca)})
	}
	for _, ca := range r.cfg.Cluster.AcceptedKubernetesCAs() {
		r.cluster.ClusterAcceptedCAs = append(r.cluster.ClusterAcceptedCAs, &x509.PEMEncodedCertificate{Crt: []byte(ca)})
	}

	return nil
}

// addLogging sends the node's logs elsewhere.
func (r *builder) addLogging() error {
	for i, destination := range r.cfg.Talos.LogDestinations {
		endpoint, err := url.Parse(destination)
		if err != nil || endpoint.Host == "" {
			return check.At(check.Index("talos.logDestinations", i), errors.New(`is not a URL such as "tcp://logs.example.com:514"`))
		}
		if r.machine.MachineLogging == nil {
			r.machine.MachineLogging = &v1alpha1.LoggingConfig{}
		}
		r.machine.MachineLogging.LoggingDestinations = append(r.machine.MachineLogging.LoggingDestinations,
			v1alpha1.LoggingDestination{LoggingEndpoint: &v1alpha1.Endpoint{URL: endpoint}, LoggingFormat: "json_lines"})
	}

	return nil
}
