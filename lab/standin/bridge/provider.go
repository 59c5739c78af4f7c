// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package bridge

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"github.com/blang/semver"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/wire"
)

// provider serves a package on one connection.
type provider struct {
	plugin.UnimplementedProvider

	pkg  *Package
	conn *wire.Conn

	mu     sync.Mutex
	client any
	types  map[string]types
}

// New makes the provider of a package for a connection.
func New(pkg *Package, conn *wire.Conn) plugin.GrpcProvider {
	return &provider{pkg: pkg, conn: conn, types: map[string]types{}}
}

// Attach lets the provider log to the engine at address.
func (p *provider) Attach(address string) error { return p.conn.Attach(address) }

// Close returns part of the protocol; the connection's end releases everything.
func (p *provider) Close() error { return nil }

// SignalCancellation ends operations under way.
func (p *provider) SignalCancellation(context.Context) error {
	p.conn.Cancel()
	return nil
}

// Handshake tells the engine what the provider understands.
func (p *provider) Handshake(
	_ context.Context, req plugin.ProviderHandshakeRequest,
) (*plugin.ProviderHandshakeResponse, error) {
	if err := p.conn.Attach(req.EngineAddress); err != nil {
		return nil, err
	}

	return &plugin.ProviderHandshakeResponse{AcceptSecrets: true, AcceptResources: false, AcceptOutputs: false}, nil
}

// GetPluginInfo tells the version that the stand-in stands for.
func (p *provider) GetPluginInfo(context.Context) (plugin.PluginInfo, error) {
	v, err := semver.Parse(p.pkg.Version)
	return plugin.PluginInfo{Version: &v}, err
}

// CheckConfig checks the provider's configuration.
func (p *provider) CheckConfig(
	_ context.Context, req plugin.CheckConfigRequest,
) (plugin.CheckConfigResponse, error) {
	t, err := InputsOf(p.pkg.Config)
	if err != nil {
		return plugin.CheckConfigResponse{}, err
	}

	news := DecodeConfig(t, req.News)
	problems := NewProblems(req.Name)
	delete(news, "version")
	delete(news, "pluginDownloadURL")
	problems.Typecheck(t, resource.NewProperty(news), nil)

	if p.pkg.CheckConfig != nil && len(problems.found) == 0 {
		p.pkg.CheckConfig(problems, TreeOf(news))
	}

	for _, k := range []resource.PropertyKey{"version", "pluginDownloadURL"} {
		if v, ok := req.News[k]; ok {
			news[k] = v
		}
	}

	return plugin.CheckConfigResponse{
		Properties: EncodeConfig(MarkSecrets(news, p.pkg.ConfigSecrets)), Failures: problems.Failures(),
	}, nil
}

// DiffConfig never replaces a bridged provider: new credentials manage the same resources.
func (p *provider) DiffConfig(_ context.Context, req plugin.DiffConfigRequest) (plugin.DiffConfigResponse, error) {
	found := Compare(resource.NewProperty(req.OldInputs), resource.NewProperty(req.NewInputs), nil)
	return Result(found, func(Change) bool { return false }), nil
}

// Configure takes the configuration of this connection.
func (p *provider) Configure(_ context.Context, req plugin.ConfigureRequest) (plugin.ConfigureResponse, error) {
	t, err := InputsOf(p.pkg.Config)
	if err != nil {
		return plugin.ConfigureResponse{}, err
	}

	client, err := p.pkg.Configure(p.conn, TreeOf(DecodeConfig(t, req.Inputs)))
	if err != nil {
		return plugin.ConfigureResponse{}, fmt.Errorf("configuring %s: %w", p.pkg.Name, err)
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	p.client = client

	return plugin.ConfigureResponse{}, nil
}

func (p *provider) resource(token string) (*Resource, types, error) {
	r, ok := p.pkg.Resources[token]
	if !ok {
		return nil, types{}, fmt.Errorf("the lab's stand-in for the provider %s does not serve %s: "+
			"use the genuine plugin (lab exec --providers real)", p.pkg.Name, token)
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	t, ok := p.types[token]
	if !ok {
		var err error
		if t, err = r.types(); err != nil {
			return nil, types{}, fmt.Errorf("reading the schema of %s: %w", token, err)
		}
		p.types[token] = t
	}

	return r, t, nil
}

func (p *provider) op(urn resource.URN, id resource.ID) (*Op, error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.client == nil {
		return nil, fmt.Errorf("the provider %s is not configured on this connection", p.pkg.Name)
	}

	op := &Op{Conn: p.conn, Client: p.client, URN: urn, ID: string(id)}
	if urn != "" { // a function has none
		op.Name = urn.Name()
	}

	return op, nil
}

// Invoke calls a function.
func (p *provider) Invoke(ctx context.Context, req plugin.InvokeRequest) (plugin.InvokeResponse, error) {
	f, ok := p.pkg.Functions[string(req.Tok)]
	if !ok {
		return plugin.InvokeResponse{}, fmt.Errorf("the lab's stand-in for the provider %s does not serve %s: "+
			"use the genuine plugin (lab exec --providers real)", p.pkg.Name, req.Tok)
	}

	t := &Type{Kind: Object}
	if f.Args != nil {
		var err error
		if t, err = TypeOf(reflect.TypeOf(f.Args)); err != nil {
			return plugin.InvokeResponse{}, fmt.Errorf("reading the schema of %s: %w", req.Tok, err)
		}
	}

	args := resource.NewProperty(req.Args)
	problems := NewProblems(string(req.Tok))
	problems.Typecheck(require(t, f.Required), args, nil)
	if len(problems.found) > 0 {
		return plugin.InvokeResponse{Failures: problems.Failures()}, nil
	}

	op, err := p.op("", "")
	if err != nil {
		return plugin.InvokeResponse{}, err
	}
	op.In = TreeOf(f.Defaults.apply(t, args, nil).ObjectValue())

	ctx, cancel := Bounded(ctx, p.conn, 0)
	defer cancel()

	out, err := f.Call(ctx, op)
	if err != nil {
		return plugin.InvokeResponse{}, fmt.Errorf("invoking %s: %w", req.Tok, err)
	}

	return plugin.InvokeResponse{Properties: out.Properties()}, nil
}
