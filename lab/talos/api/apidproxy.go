// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/talos-proxmox/talos-proxmox/lab/talos/node"
)

// apidProxy sends calls on to the nodes that their metadata names, as apid does.
type apidProxy struct {
	node        *node.Node
	maintenance bool
}

func (p *apidProxy) unary(
	ctx context.Context, req any, method string, local func(context.Context, any) (any, error),
) (any, error) {
	targets, many, err := p.targets(ctx, method)
	if err != nil {
		return nil, err
	}
	if len(targets) == 0 {
		return local(ctx, req)
	}

	replies := make([]proto.Message, len(targets))
	errs := make([]error, len(targets))
	var wg sync.WaitGroup
	for i, target := range targets {
		wg.Go(func() {
			replies[i], errs[i] = p.invoke(ctx, target, method, req)
		})
	}
	wg.Wait()

	if !many {
		if errs[0] != nil {
			return nil, errs[0]
		}

		return replies[0], nil
	}

	all, err := newMessage(method, false)
	if err != nil {
		return nil, err
	}
	for i, target := range targets {
		if errs[i] != nil {
			if replies[i], err = errorReply(method, errs[i]); err != nil {
				return nil, err
			}
		}
		setHostname(replies[i], target)
		proto.Merge(all, replies[i])
	}

	return all, nil
}

func (p *apidProxy) invoke(ctx context.Context, target, method string, req any) (proto.Message, error) {
	reply, err := newMessage(method, false)
	if err != nil {
		return nil, err
	}
	conn, err := dial(p.node, target)
	if err != nil {
		return nil, err
	}
	defer conn.Close() //nolint:errcheck // the call is over

	if err := conn.Invoke(p.outgoing(ctx), method, req, reply); err != nil {
		return nil, err // a proxy hands the status on as it is
	}

	return reply, nil
}

// outgoing tells the next node who asks and that the call has been passed on.
func (p *apidProxy) outgoing(ctx context.Context) context.Context {
	md, _ := metadata.FromIncomingContext(ctx)
	md = md.Copy()
	for _, k := range []string{":authority", "node", "nodes", "content-type", "user-agent", "grpc-accept-encoding"} {
		delete(md, k)
	}
	md.Set("proxyfrom", p.node.Hostname())
	md.Set(constants.APIAuthzRoleMetadataKey, callerRoles(ctx).Strings()...)

	return metadata.NewOutgoingContext(ctx, md)
}

// dial reaches another node's API through the site's network.
func dial(n *node.Node, target string) (*grpc.ClientConn, error) {
	pki := n.PKI()
	if pki == nil || pki.Client == nil {
		return nil, status.Error(codes.PermissionDenied, "no request forwarding")
	}

	conn, err := grpc.NewClient(
		"passthrough:///"+net.JoinHostPort(strings.Trim(target, "[]"), fmt.Sprint(constants.ApidPort)),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			conn, err := n.VM.Net.DialContext(ctx, "tcp", addr)

			return conn, kernelError(addr, err)
		}),
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
			RootCAs: pki.Roots, Certificates: []tls.Certificate{*pki.Client},
			ServerName: strings.Trim(target, "[]"), MinVersion: tls.VersionTLS13,
		})),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(constants.GRPCMaxMessageSize)),
	)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}

	return conn, nil
}

func (p *apidProxy) stream(s grpc.ServerStream, method string, local func(grpc.ServerStream) error) error {
	targets, many, err := p.targets(s.Context(), method)
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		return local(s)
	}

	out := &lockedSender{stream: s}
	if len(targets) == 1 {
		return p.pipe(s, out, method, targets[0], many)
	}

	first, err := newMessage(method, true)
	if err != nil {
		return err
	}
	if err := s.RecvMsg(first); err != nil {
		return err // the caller's own stream
	}
	var wg sync.WaitGroup
	for _, target := range targets {
		wg.Go(func() {
			replay := &replayed{ServerStream: s, first: first}
			_ = p.pipe(replay, out, method, target, true) // reported inside the stream
		})
	}
	wg.Wait()

	return nil
}

// pipe connects the caller's stream with the target's.
func (p *apidProxy) pipe(in grpc.ServerStream, out *lockedSender, method, target string, many bool) error {
	err := p.copyStream(in, out, method, target, many)
	if err == nil || !many {
		return err
	}

	m, buildErr := newMessage(method, false)
	if buildErr != nil {
		return buildErr
	}
	setMetadata(m, target, err)

	return out.send(m)
}

func (p *apidProxy) copyStream(in grpc.ServerStream, out *lockedSender, method, target string, many bool) error {
	conn, err := dial(p.node, target)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the call is over

	ctx, cancel := context.WithCancel(p.outgoing(in.Context()))
	defer cancel()
	remote, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err // a proxy hands the status on as it is
	}

	go func() {
		for {
			m, err := newMessage(method, true)
			if err == nil {
				err = in.RecvMsg(m)
			}
			if err != nil {
				if errors.Is(err, io.EOF) {
					_ = remote.CloseSend() // the receiving side tells how it went
				} else {
					cancel()
				}

				return
			}
			if remote.SendMsg(m) != nil {
				return
			}
		}
	}()

	for {
		m, err := newMessage(method, false)
		if err != nil {
			return err
		}
		if err := remote.RecvMsg(m); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}

			return err // a proxy hands the status on as it is
		}
		if many {
			setMetadata(m, target, nil)
		}
		if err := out.send(m); err != nil {
			return err
		}
	}
}

// replayed serves a stream whose only message was already read.
type replayed struct {
	grpc.ServerStream
	first proto.Message
	done  bool
}

// RecvMsg implements [grpc.ServerStream].
func (r *replayed) RecvMsg(m any) error {
	if r.done {
		return io.EOF
	}
	r.done = true
	proto.Merge(m.(proto.Message), r.first) // pipe makes the message itself

	return nil
}

type lockedSender struct {
	mu     sync.Mutex
	stream grpc.ServerStream
}

func (l *lockedSender) send(m proto.Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.stream.SendMsg(m) // the caller's own stream
}

// kernelError returns an error of the site's network as the kernel has it.
func kernelError(addr string, err error) error {
	ap, parseErr := netip.ParseAddrPort(addr)
	var reason syscall.Errno
	if err == nil || parseErr != nil || !errors.As(err, &reason) {
		return err
	}

	return &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(ap), Err: os.NewSyscallError("connect", reason)}
}
