// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package api

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/talos-proxmox/talos-proxmox/lab/talos/node"

	_ "google.golang.org/grpc/encoding/gzip" // Talos's clients may compress
)

// newServer returns a gRPC server that knows its callers' roles and passes calls on to other nodes.
func newServer(n *node.Node, t *tls.Config, maintenance bool) *grpc.Server {
	p := &apidProxy{node: n, maintenance: maintenance}

	return grpc.NewServer(
		grpc.Creds(credentials.NewTLS(t)),
		grpc.MaxRecvMsgSize(constants.GRPCMaxMessageSize),
		grpc.ChainUnaryInterceptor(
			func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
				ctx = withRoles(ctx, maintenance)

				return p.unary(ctx, req, info.FullMethod, func(ctx context.Context, req any) (any, error) {
					if err := authorize(ctx, info.FullMethod, maintenance, n.Image.Talos); err != nil {
						return nil, err
					}
					if n.IsStopping() {
						return nil, errNoMachined
					}

					return n.InjectFaults(ctx, req, info.FullMethod, next)
				})
			},
		),
		grpc.ChainStreamInterceptor(
			func(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
				s = &streamWithContext{ServerStream: s, ctx: withRoles(s.Context(), maintenance)}

				return p.stream(s, info.FullMethod, func(s grpc.ServerStream) error {
					if err := authorize(s.Context(), info.FullMethod, maintenance, n.Image.Talos); err != nil {
						return err
					}
					if n.IsStopping() {
						return errNoMachined
					}
					if err := n.InjectFault(s.Context(), info.FullMethod); err != nil {
						return err
					}

					return next(srv, s)
				})
			},
		),
	)
}

// errNoMachined is apid's answer while the node stops: machined has gone before it.
var errNoMachined = status.Error(codes.Unavailable, `connection error: desc = "transport: Error while dialing: `+
	`dial unix /system/run/machined/machine.sock: connect: no such file or directory"`)

type streamWithContext struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements [grpc.ServerStream].
func (s *streamWithContext) Context() context.Context { return s.ctx }

// listenAPI serves on port 50000 of every address of the node until stopped.
func listenAPI(n *node.Node, s *grpc.Server) (stop func()) {
	closeListeners := n.Book.Listen(constants.ApidPort, func(l net.Listener) {
		_ = s.Serve(l) // ends when the listener closes
	})

	return func() {
		closeListeners()
		stopServer(s)
	}
}

// stopGrace is how long, in real time, a server that stops lets answers go out: on a machine with a thousand nodes they wait
// for a processor.
const stopGrace = time.Second

// stopServer lets calls that were answered reach their caller, and cuts the others off.
func stopServer(s *grpc.Server) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.GracefulStop()
	}()
	t := time.NewTimer(stopGrace)
	defer t.Stop()

	select {
	case <-done:
	case <-t.C:
		s.Stop()
		<-done
	}
}

// targets returns the nodes that a call asks for; many tells that it wants one answer from each.
func (p *apidProxy) targets(ctx context.Context, method string) (targets []string, many bool, err error) {
	md, ok := metadata.FromIncomingContext(ctx)
	if !ok || len(md.Get("proxyfrom")) > 0 {
		return nil, false, nil
	}

	// maintenance mode does not look at the metadata: since 1.13 apid runs with its routing off there
	if p.maintenance {
		return nil, false, nil
	}

	one, all := md.Get("node"), md.Get("nodes")
	if len(one) > 1 {
		return nil, false, status.Error(codes.InvalidArgument, "node metadata must be single-valued")
	}
	if len(all) > 0 && len(method) > 6 && method[:6] == "/cosi." {
		return nil, false, status.Error(codes.InvalidArgument, "one-2-many proxying is not supported for COSI methods")
	}
	if !p.canForward() {
		if len(one) == 1 && p.isLocal(one[0]) {
			one = nil
		}
		if len(all) == 1 && p.isLocal(all[0]) {
			all = nil
		}
		if len(one)+len(all) > 0 {
			return nil, false, status.Error(codes.PermissionDenied, "no request forwarding")
		}
	}
	if len(all) > 0 {
		return all, true, nil
	}

	return one, false, nil
}

// canForward reports whether this node has a certificate for calls to others.
func (p *apidProxy) canForward() bool {
	pki := p.node.PKI()

	return !p.maintenance && pki != nil && pki.Client != nil
}

func (p *apidProxy) isLocal(target string) bool {
	if target == p.node.Hostname() || target == "127.0.0.1" || target == "localhost" {
		return true
	}
	for _, a := range p.node.Book.Addresses() {
		if a.Addr().String() == target {
			return true
		}
	}

	return false
}
