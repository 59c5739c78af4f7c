// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"crypto/tls"
	"errors"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/api/storage"
)

// pkiNow is the PKI that the API uses, nil while it has none.
func (n *node) pkiNow() *apiPKI {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.pki
}

// currentPKI is the PKI with certificates that are as valid as the node's are now.
func (n *node) currentPKI() *apiPKI {
	const aging = time.Hour // while nothing goes wrong
	pki := n.pkiNow()
	if from, _ := n.validity(); n.m.Faults != nil && pki.from.Sub(from).Abs() > aging {
		if err := n.renewPKI(); err == nil {
			return n.pkiNow()
		}
	}

	return pki
}

// renewPKI issues the API's certificates for the addresses that the node has.
func (n *node) renewPKI() error {
	cfg := n.config()
	sec := cfg.Machine().Security()
	addrs := n.book.wanted()
	n.mu.Lock()
	for _, v := range n.vips {
		addrs = append(addrs, singlePrefix(v))
	}
	n.mu.Unlock()

	ca, accepted := sec.IssuingCA(), sec.AcceptedCAs()
	if !isControlPlane(cfg) {
		peer := n.nodes.trustd(n)
		if peer == nil {
			return errors.New("no control plane's trustd answers")
		}
		ca = peer.config().Machine().Security().IssuingCA()
	}

	from, to := n.validity()
	pki, err := newAPIPKI(ca, accepted, isControlPlane(cfg), n.hostname(), addrs, sec.CertSANs(), from, to)
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
func (ns *Nodes) trustd(worker *node) *node {
	sec := worker.config().Machine().Security()
	for _, n := range ns.all() {
		cfg := n.config()
		if n.m.Net != worker.m.Net || !isControlPlane(cfg) || len(n.book.addresses()) == 0 {
			continue
		}
		theirs := cfg.Machine().Security()
		if sec.IssuingCA() == nil || theirs.IssuingCA() == nil || theirs.Token() != sec.Token() {
			continue
		}
		if sameCertificate(theirs.IssuingCA().Crt, sec.IssuingCA().Crt) {
			return n
		}
	}

	return nil
}

// runAPI serves the Talos API with mutual TLS.
func (n *node) runAPI(ctx context.Context) {
	for {
		err := n.renewPKI()
		if err == nil {
			break
		}
		n.console("apid is waiting for its certificate", "error", err)
		if n.m.Clock.Sleep(ctx, trustdRetry) != nil {
			return
		}
	}

	api := n.newServer(&tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			pki := n.currentPKI()

			return &tls.Config{
				Time:       func() time.Time { return time.Now().Add(n.skew()) },
				MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"},
				Certificates: []tls.Certificate{pki.server},
				ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: pki.roots,
			}, nil
		},
	}, false)
	s := &machineServer{node: n}
	machine.RegisterMachineServiceServer(api, s)
	if atLeast(n.image.Talos, 1, 13) {
		machine.RegisterLifecycleServiceServer(api, &lifecycleServer{node: n, power: ctx})
		machine.RegisterImageServiceServer(api, &imageServer{node: n})
	}
	storage.RegisterStorageServiceServer(api, &storageServer{node: n})
	registerTime(api, n)
	n.registerState(api)

	stop := n.listenAPI(api)
	defer stop()
	n.services.set("apid", stateRunning, "Health check successful", true)
	n.publishState()
	<-ctx.Done()
}
