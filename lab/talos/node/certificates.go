// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"errors"
	"slices"
	"time"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config"

	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/nodenet"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/nodepki"
)

// PKI returns the PKI that the API uses, nil while it has none.
func (n *Node) PKI() *nodepki.PKI {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.pki
}

// CurrentPKI returns the PKI with certificates that are as valid as the node's are now.
func (n *Node) CurrentPKI() *nodepki.PKI {
	const aging = time.Hour // while nothing goes wrong
	pki := n.PKI()
	if from, _ := n.Validity(); n.VM.Faults != nil && pki.From.Sub(from).Abs() > aging {
		if err := n.RenewPKI(); err == nil {
			return n.PKI()
		}
	}

	return pki
}

// RenewPKI issues the API's certificates for the addresses that the node has.
func (n *Node) RenewPKI() error {
	cfg := n.Config()
	sec := cfg.Machine().Security()
	addrs := n.Book.Wanted()
	n.mu.Lock()
	for _, v := range n.vips {
		addrs = append(addrs, nodenet.SinglePrefix(v))
	}
	n.mu.Unlock()

	ca, accepted := sec.IssuingCA(), sec.AcceptedCAs()
	if !machineconfig.IsControlPlane(cfg) {
		peer := n.Nodes.trustd(n)
		if peer == nil {
			return errors.New("no control plane's trustd answers")
		}
		ca = peer.Config().Machine().Security().IssuingCA()
	}

	from, to := n.Validity()
	pki, err := nodepki.New(ca, accepted, machineconfig.IsControlPlane(cfg), n.Hostname(), addrs, sec.CertSANs(), from, to)
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.pki = pki
	n.mu.Unlock()

	return nil
}

// trustd finds a control plane that signs a worker's certificate: the worker must trust its
// authority and know its token.
func (ns *Nodes) trustd(worker *Node) *Node {
	sec := worker.Config().Machine().Security()
	for _, n := range ns.all() {
		cfg := n.Config()
		if n.VM.Net != worker.VM.Net || !machineconfig.IsControlPlane(cfg) || len(n.Book.Addresses()) == 0 {
			continue
		}
		theirs := cfg.Machine().Security()
		if sec.IssuingCA() == nil || theirs.IssuingCA() == nil || theirs.Token() != sec.Token() {
			continue
		}
		if trusts(sec.IssuingCA().Crt, sec.AcceptedCAs(), theirs.IssuingCA().Crt) {
			return n
		}
	}

	return nil
}

// trusts reports whether an authority is the node's own, or one that it accepts.
func trusts(own []byte, accepted []*x509.PEMEncodedCertificate, ca []byte) bool {
	return nodepki.SameCertificate(own, ca) || slices.ContainsFunc(accepted, func(a *x509.PEMEncodedCertificate) bool {
		return nodepki.SameCertificate(a.Crt, ca)
	})
}

// trustsKubernetes reports whether a node's kubelet trusts an API server with a certificate of that authority.
func trustsKubernetes(cfg config.Provider, ca []byte) bool {
	return trusts(machineconfig.KubernetesCA(cfg).Crt, cfg.K8sAPIServerCAConfig().AcceptedCAs(), ca)
}
