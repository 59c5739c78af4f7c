// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package wire

import (
	"context"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// dispatcher hands every call to the provider of the connection it came by.
type dispatcher struct {
	pulumirpc.UnimplementedResourceProviderServer
}

// rpc calls a method of the provider protocol.
type rpc[Q, R any] func(pulumirpc.ResourceProviderServer, context.Context, Q) (R, error)

func forward[Q, R any](ctx context.Context, q Q, method rpc[Q, R]) (R, error) {
	c, ok := ctx.Value(connKey{}).(*Conn)
	if !ok {
		var none R
		return none, status.Error(codes.Internal, "the call belongs to no connection")
	}

	return method(c.server, ctx, q)
}

func (dispatcher) Handshake(
	ctx context.Context, q *pulumirpc.ProviderHandshakeRequest,
) (*pulumirpc.ProviderHandshakeResponse, error) {
	return forward(ctx, q, pulumirpc.ResourceProviderServer.Handshake)
}

func (dispatcher) Parameterize(
	ctx context.Context, q *pulumirpc.ParameterizeRequest,
) (*pulumirpc.ParameterizeResponse, error) {
	return forward(ctx, q, pulumirpc.ResourceProviderServer.Parameterize)
}

func (dispatcher) GetSchema(
	ctx context.Context, q *pulumirpc.GetSchemaRequest,
) (*pulumirpc.GetSchemaResponse, error) {
	return forward(ctx, q, pulumirpc.ResourceProviderServer.GetSchema)
}

func (dispatcher) CheckConfig(
	ctx context.Context, q *pulumirpc.CheckRequest,
) (*pulumirpc.CheckResponse, error) {
	return forward(ctx, q, pulumirpc.ResourceProviderServer.CheckConfig)
}

func (dispatcher) DiffConfig(
	ctx context.Context, q *pulumirpc.DiffRequest,
) (*pulumirpc.DiffResponse, error) {
	r, err := forward(ctx, q, pulumirpc.ResourceProviderServer.DiffConfig)
	if err != nil {
		return nil, err
	}

	return detailed(r), nil
}

func (dispatcher) Configure(
	ctx context.Context, q *pulumirpc.ConfigureRequest,
) (*pulumirpc.ConfigureResponse, error) {
	return forward(ctx, q, pulumirpc.ResourceProviderServer.Configure)
}

func (dispatcher) Invoke(
	ctx context.Context, q *pulumirpc.InvokeRequest,
) (*pulumirpc.InvokeResponse, error) {
	return forward(ctx, q, pulumirpc.ResourceProviderServer.Invoke)
}

func (dispatcher) Call(
	ctx context.Context, q *pulumirpc.CallRequest,
) (*pulumirpc.CallResponse, error) {
	return forward(ctx, q, pulumirpc.ResourceProviderServer.Call)
}

func (dispatcher) Check(
	ctx context.Context, q *pulumirpc.CheckRequest,
) (*pulumirpc.CheckResponse, error) {
	return forward(ctx, q, pulumirpc.ResourceProviderServer.Check)
}

func (dispatcher) Diff(
	ctx context.Context, q *pulumirpc.DiffRequest,
) (*pulumirpc.DiffResponse, error) {
	r, err := forward(ctx, q, pulumirpc.ResourceProviderServer.Diff)
	if err != nil {
		return nil, err
	}

	return detailed(r), nil
}

// detailed says what the SDK's server leaves out: that a detailed diff is there, without which the engine
// shows that a resource changes and not what, and which deletions replace.
func detailed(r *pulumirpc.DiffResponse) *pulumirpc.DiffResponse {
	r.HasDetailedDiff = len(r.GetDetailedDiff()) > 0
	for _, path := range r.GetReplaces() {
		if d := r.GetDetailedDiff()[path]; d.GetKind() == pulumirpc.PropertyDiff_DELETE {
			d.Kind = pulumirpc.PropertyDiff_DELETE_REPLACE
		}
	}

	return r
}

func (dispatcher) Create(
	ctx context.Context, q *pulumirpc.CreateRequest,
) (*pulumirpc.CreateResponse, error) {
	return forward(ctx, q, pulumirpc.ResourceProviderServer.Create)
}

func (dispatcher) Read(
	ctx context.Context, q *pulumirpc.ReadRequest,
) (*pulumirpc.ReadResponse, error) {
	return forward(ctx, q, pulumirpc.ResourceProviderServer.Read)
}

func (dispatcher) Update(
	ctx context.Context, q *pulumirpc.UpdateRequest,
) (*pulumirpc.UpdateResponse, error) {
	return forward(ctx, q, pulumirpc.ResourceProviderServer.Update)
}

func (dispatcher) Construct(
	ctx context.Context, q *pulumirpc.ConstructRequest,
) (*pulumirpc.ConstructResponse, error) {
	return forward(ctx, q, pulumirpc.ResourceProviderServer.Construct)
}

func (dispatcher) GetMapping(
	ctx context.Context, q *pulumirpc.GetMappingRequest,
) (*pulumirpc.GetMappingResponse, error) {
	return forward(ctx, q, pulumirpc.ResourceProviderServer.GetMapping)
}

func (dispatcher) GetMappings(
	ctx context.Context, q *pulumirpc.GetMappingsRequest,
) (*pulumirpc.GetMappingsResponse, error) {
	return forward(ctx, q, pulumirpc.ResourceProviderServer.GetMappings)
}

func (dispatcher) Delete(ctx context.Context, q *pulumirpc.DeleteRequest) (*emptypb.Empty, error) {
	return forward(ctx, q, pulumirpc.ResourceProviderServer.Delete)
}

func (dispatcher) Cancel(ctx context.Context, q *emptypb.Empty) (*emptypb.Empty, error) {
	return forward(ctx, q, pulumirpc.ResourceProviderServer.Cancel)
}

func (dispatcher) GetPluginInfo(ctx context.Context, q *emptypb.Empty) (*pulumirpc.PluginInfo, error) {
	return forward(ctx, q, pulumirpc.ResourceProviderServer.GetPluginInfo)
}

func (dispatcher) Attach(ctx context.Context, q *pulumirpc.PluginAttach) (*emptypb.Empty, error) {
	return forward(ctx, q, pulumirpc.ResourceProviderServer.Attach)
}
