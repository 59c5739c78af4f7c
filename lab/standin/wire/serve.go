// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package wire

import (
	"context"
	"fmt"
	"net"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// maxMessage is what an engine and a plugin agree on: 400 MB.
const maxMessage = 400 << 20

// Serve serves providers on a free loopback port until ctx ends. Each connection gets its own
// provider from newProvider, and calls counts what is called. The channel gets one value when serving has ended, nil after ctx.
func Serve(ctx context.Context, newProvider func(*Conn) plugin.Provider, calls *Calls) (int, <-chan error, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, nil, fmt.Errorf("listening for an engine: %w", err)
	}

	s := grpc.NewServer(
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage),
		grpc.ChainUnaryInterceptor(calls.count, survive),
		grpc.StatsHandler(&tagger{base: ctx, make: newProvider}),
	)
	pulumirpc.RegisterResourceProviderServer(s, dispatcher{})

	done := make(chan error, 1)
	stop := context.AfterFunc(ctx, s.Stop)

	go func() {
		defer stop()
		err := s.Serve(l)
		if ctx.Err() != nil {
			err = nil
		}
		done <- err
	}()

	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		s.Stop()
		return 0, nil, fmt.Errorf("listening for an engine: %s is no TCP address", l.Addr())
	}

	return addr.Port, done, nil
}

// survive makes an error of a panic: other engines use the same process.
func survive(
	ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
) (_ any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = status.Errorf(codes.Internal, "%s: the stand-in failed: %v", info.FullMethod, p)
		}
	}()

	return handle(ctx, req)
}
