// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package api

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/api/storage"

	"github.com/talos-proxmox/talos-proxmox/lab/talos/events"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/node"
)

// ServeConfigured serves the Talos API with mutual TLS.
func (Server) ServeConfigured(ctx context.Context, n *node.Node) {
	for {
		err := n.RenewPKI()
		if err == nil {
			break
		}
		n.Console("apid is waiting for its certificate", "error", err)
		if n.VM.Clock.Sleep(ctx, node.TrustdRetry) != nil {
			return
		}
	}

	api := newServer(n, &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			pki := n.CurrentPKI()

			return &tls.Config{
				Time:       func() time.Time { return time.Now().Add(n.Skew()) },
				MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"},
				Certificates: []tls.Certificate{pki.Server},
				ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: pki.Roots,
			}, nil
		},
	}, false)
	s := &machineServer{node: n}
	machine.RegisterMachineServiceServer(api, s)
	if machineconfig.AtLeast(n.Image.Talos, 1, 13) {
		machine.RegisterLifecycleServiceServer(api, &lifecycleServer{node: n, power: ctx})
		machine.RegisterImageServiceServer(api, &imageServer{node: n})
	}
	storage.RegisterStorageServiceServer(api, &storageServer{node: n})
	registerTime(api, n)
	registerState(api, n)

	stop := listenAPI(n, api)
	defer stop()
	n.Services.Set("apid", events.StateRunning, "Health check successful", true)
	n.PublishState()
	<-ctx.Done()
}

// Server serves the Talos API of nodes.
type Server struct{}
