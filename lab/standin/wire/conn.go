// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package wire

import (
	"context"
	"errors"
	"sync"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/stats"
)

// Conn serves one connection of an engine: one configured provider. Several programs, and several
// providers of one program, share a stand-in's port; what each was configured with stays apart.
type Conn struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	server pulumirpc.ResourceProviderServer

	mu     sync.Mutex
	engine pulumirpc.EngineClient
	dialed *grpc.ClientConn
}

// ErrCancelled ends what is under way when the engine cancels it.
var ErrCancelled = errors.New("the operation was cancelled")

// Context ends when the engine is gone or has asked to cancel. The cause is [ErrCancelled] for the latter.
func (c *Conn) Context() context.Context { return c.ctx }

// Cancel ends what is under way.
func (c *Conn) Cancel() { c.cancel(ErrCancelled) }

// Attach connects to the engine at address, to send it log lines.
func (c *Conn) Attach(address string) error {
	if address == "" {
		return nil
	}

	// The engine is on loopback; a proxy of the site must not get between.
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
	if err != nil {
		return err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	if c.dialed != nil {
		_ = c.dialed.Close()
	}
	c.dialed, c.engine = conn, pulumirpc.NewEngineClient(conn)

	return nil
}

// Severity of a log line.
type Severity = pulumirpc.LogSeverity

// The severities in use.
const (
	Debug   Severity = pulumirpc.LogSeverity_DEBUG
	Info    Severity = pulumirpc.LogSeverity_INFO
	Warning Severity = pulumirpc.LogSeverity_WARNING
)

// Log sends a line to the engine's display, at the resource urn. A lost line is no error.
func (c *Conn) Log(severity Severity, urn resource.URN, message string) {
	c.mu.Lock()
	engine := c.engine
	c.mu.Unlock()

	if engine == nil {
		return
	}

	_, _ = engine.Log(c.ctx, &pulumirpc.LogRequest{
		Severity: severity, Message: message, Urn: string(urn),
	})
}

func (c *Conn) close() {
	c.cancel(context.Canceled)

	c.mu.Lock()
	defer c.mu.Unlock()

	if c.dialed != nil {
		_ = c.dialed.Close()
	}
}

type connKey struct{}

// tagger gives every transport connection its own [Conn].
type tagger struct {
	base context.Context
	make func(*Conn) plugin.Provider
}

func (t *tagger) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	c := &Conn{}
	c.ctx, c.cancel = context.WithCancelCause(t.base)
	c.server = plugin.NewProviderServer(t.make(c))

	return context.WithValue(ctx, connKey{}, c)
}

func (*tagger) HandleConn(ctx context.Context, s stats.ConnStats) {
	if _, ok := s.(*stats.ConnEnd); ok {
		if c, ok := ctx.Value(connKey{}).(*Conn); ok {
			c.close()
		}
	}
}

func (*tagger) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }
func (*tagger) HandleRPC(context.Context, stats.RPCStats)                       {}
