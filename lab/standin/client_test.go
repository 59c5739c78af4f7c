// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package standin_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/talos-proxmox/talos-proxmox/lab/standin"
	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
	"github.com/talos-proxmox/talos-proxmox/lab/standin/wire"
)

// engine calls a provider over the wire, as Pulumi's engine does.
type engine struct {
	t   *testing.T
	rpc pulumirpc.ResourceProviderClient
	// ignore is what the program ignores.
	ignore []string
	// deleteTimeout is how long a deletion may take, in seconds; 0 leaves it to the provider.
	deleteTimeout float64
}

// serve starts a stand-in and returns its port.
func serve(t *testing.T, name string) int {
	t.Helper()

	port, _, err := standin.Serve(t.Context(), name, &wire.Calls{})
	require.NoError(t, err)

	return port
}

// attach connects as an engine does.
func attach(t *testing.T, port int) engine {
	t.Helper()

	conn, err := grpc.NewClient(fmt.Sprintf("passthrough:///127.0.0.1:%d", port),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })

	e := engine{t: t, rpc: pulumirpc.NewResourceProviderClient(conn)}
	_, err = e.rpc.Handshake(t.Context(), &pulumirpc.ProviderHandshakeRequest{EngineAddress: ""})
	if status.Code(err) != codes.Unimplemented { // the genuine plugins are from before it
		require.NoError(t, err)
	}
	_, err = e.rpc.GetPluginInfo(t.Context(), &emptypb.Empty{})
	require.NoError(t, err)

	return e
}

func (e engine) configure(config bridge.Tree) error {
	_, err := e.rpc.Configure(e.t.Context(), &pulumirpc.ConfigureRequest{
		Args: e.marshal(config.Properties()), AcceptSecrets: true, AcceptResources: true,
		Variables: e.variables(config),
	})

	return err
}

// variables returns the configuration in the form in which older plugins read it.
func (e engine) variables(config bridge.Tree) map[string]string {
	all := map[string]string{}
	for name, value := range config {
		for _, pkg := range slices.Sorted(maps.Keys(pinned())) {
			all[pkg+":config:"+name] = fmt.Sprint(value)
		}
	}

	return all
}

func urn(typ, name string) resource.URN {
	return resource.NewURN("dev", "test", "", tokens.Type(typ), name)
}

func (e engine) marshal(props resource.PropertyMap) *structpb.Struct {
	e.t.Helper()

	s, err := plugin.MarshalProperties(props, plugin.MarshalOptions{KeepUnknowns: true, KeepSecrets: true})
	require.NoError(e.t, err)

	return s
}

func (e engine) unmarshal(s *structpb.Struct) resource.PropertyMap {
	e.t.Helper()

	props, err := plugin.UnmarshalProperties(s, plugin.MarshalOptions{KeepUnknowns: true, KeepSecrets: true})
	require.NoError(e.t, err)

	return props
}

// check returns completed inputs and problems as "property: reason".
func (e engine) check(u resource.URN, news, olds resource.PropertyMap) (resource.PropertyMap, []string) {
	e.t.Helper()

	in, problems, err := e.tryCheck(u, news, olds)
	require.NoError(e.t, err)

	return in, problems
}

// tryCheck returns check for what a provider may refuse altogether.
func (e engine) tryCheck(
	u resource.URN, news, olds resource.PropertyMap,
) (in resource.PropertyMap, problems []string, err error) {
	e.t.Helper()

	r, err := e.rpc.Check(e.t.Context(), &pulumirpc.CheckRequest{
		Urn: string(u), News: e.marshal(news), Olds: e.marshal(olds), RandomSeed: []byte("01234567890123456789012345678901"),
	})
	if err != nil {
		return nil, nil, err
	}
	for _, f := range r.GetFailures() {
		problems = append(problems, f.GetProperty()+": "+f.GetReason())
	}

	return e.unmarshal(r.GetInputs()), problems, nil
}

func (e engine) create(
	u resource.URN, in resource.PropertyMap, preview bool,
) (id string, out resource.PropertyMap, err error) {
	e.t.Helper()

	r, err := e.rpc.Create(e.t.Context(), &pulumirpc.CreateRequest{
		Urn: string(u), Properties: e.marshal(in), Preview: preview,
	})
	if err != nil {
		return "", nil, err
	}

	return r.GetId(), e.unmarshal(r.GetProperties()), nil
}

func (e engine) diff(
	u resource.URN, id string, oldIn, oldOut, news resource.PropertyMap,
) *pulumirpc.DiffResponse {
	e.t.Helper()

	d, err := e.tryDiff(u, id, oldIn, oldOut, news)
	require.NoError(e.t, err)

	return d
}

func (e engine) tryDiff(
	u resource.URN, id string, oldIn, oldOut, news resource.PropertyMap,
) (*pulumirpc.DiffResponse, error) {
	e.t.Helper()

	return e.rpc.Diff(e.t.Context(), &pulumirpc.DiffRequest{
		Urn: string(u), Id: id, OldInputs: e.marshal(oldIn), Olds: e.marshal(oldOut), News: e.marshal(news),
		IgnoreChanges: e.ignore,
	})
}

func (e engine) update(
	u resource.URN, id string, oldIn, oldOut, news resource.PropertyMap,
) (resource.PropertyMap, error) {
	e.t.Helper()

	return e.tryUpdate(u, id, oldIn, oldOut, news, false)
}

func (e engine) tryUpdate(
	u resource.URN, id string, oldIn, oldOut, news resource.PropertyMap, preview bool,
) (resource.PropertyMap, error) {
	e.t.Helper()

	r, err := e.rpc.Update(e.t.Context(), &pulumirpc.UpdateRequest{
		Preview: preview,
		Urn:     string(u), Id: id, OldInputs: e.marshal(oldIn), Olds: e.marshal(oldOut), News: e.marshal(news),
		IgnoreChanges: e.ignore,
	})
	if err != nil {
		return nil, err
	}

	return e.unmarshal(r.GetProperties()), nil
}

func (e engine) read(u resource.URN, id string, in, state resource.PropertyMap) *pulumirpc.ReadResponse {
	e.t.Helper()

	r, err := e.rpc.Read(e.t.Context(), &pulumirpc.ReadRequest{
		Urn: string(u), Id: id, Inputs: e.marshal(in), Properties: e.marshal(state),
	})
	require.NoError(e.t, err)

	return r
}

func (e engine) remove(u resource.URN, id string, in, state resource.PropertyMap) error {
	e.t.Helper()

	_, err := e.rpc.Delete(context.WithoutCancel(e.t.Context()), &pulumirpc.DeleteRequest{
		Urn: string(u), Id: id, OldInputs: e.marshal(in), Properties: e.marshal(state), Timeout: e.deleteTimeout,
	})

	return err
}

func (e engine) invoke(token string, args bridge.Tree) (bridge.Tree, error) {
	e.t.Helper()

	r, err := e.rpc.Invoke(e.t.Context(), &pulumirpc.InvokeRequest{Tok: token, Args: e.marshal(args.Properties())})
	if err != nil {
		return nil, err
	}
	require.Empty(e.t, r.GetFailures())

	return bridge.TreeOf(e.unmarshal(r.GetReturn())), nil
}
