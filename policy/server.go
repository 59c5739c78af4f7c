// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package policy

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
)

// Name of the pack.
const Name = "talos-proxmox"

// Serve serves the policies to the engine on a free port of the loopback, which it writes first, until the context ends.
func Serve(ctx context.Context, version string, out io.Writer) error {
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("serving policies: %w", err)
	}
	// The engine sends whole stacks, which are longer than gRPC takes by default.
	const longest = 400 << 20
	server := grpc.NewServer(grpc.MaxRecvMsgSize(longest))
	pulumirpc.RegisterAnalyzerServer(server, &analyzer{version: version, levels: map[string]pulumirpc.EnforcementLevel{}})
	go func() {
		<-ctx.Done()
		server.Stop()
	}()
	if _, ok := listener.Addr().(*net.TCPAddr); ok {
		fmt.Fprintln(out, listener.Addr().(*net.TCPAddr).Port)
	}

	return server.Serve(listener)
}

// analyzer serves the pack to the engine.
type analyzer struct {
	pulumirpc.UnimplementedAnalyzerServer

	version string

	mu     sync.Mutex
	levels map[string]pulumirpc.EnforcementLevel
	pack   Pack
}

// Handshake takes the engine's greeting.
func (a *analyzer) Handshake(context.Context, *pulumirpc.AnalyzerHandshakeRequest) (*pulumirpc.AnalyzerHandshakeResponse, error) {
	return &pulumirpc.AnalyzerHandshakeResponse{}, nil
}

// GetPluginInfo returns the version.
func (a *analyzer) GetPluginInfo(context.Context, *emptypb.Empty) (*pulumirpc.PluginInfo, error) {
	return &pulumirpc.PluginInfo{Version: a.version}, nil
}

// GetAnalyzerInfo lists the policies.
func (a *analyzer) GetAnalyzerInfo(context.Context, *emptypb.Empty) (*pulumirpc.AnalyzerInfo, error) {
	info := &pulumirpc.AnalyzerInfo{
		Name: Name, DisplayName: "Talos Linux on Proxmox VE", Version: a.version, SupportsConfig: true,
		InitialConfig: map[string]*pulumirpc.PolicyConfig{},
	}
	for _, p := range Policies() {
		info.Policies = append(info.Policies, &pulumirpc.PolicyInfo{
			Name: p.Name, Description: p.Description, EnforcementLevel: pulumirpc.EnforcementLevel_MANDATORY,
			PolicyType: pulumirpc.PolicyType_POLICY_TYPE_RESOURCE,
		})
		info.InitialConfig[p.Name] = &pulumirpc.PolicyConfig{EnforcementLevel: pulumirpc.EnforcementLevel_MANDATORY}
	}

	return info, nil
}

// Configure takes the levels of policies.
func (a *analyzer) Configure(_ context.Context, req *pulumirpc.ConfigureAnalyzerRequest) (*emptypb.Empty, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, c := range req.GetPolicyConfig() {
		a.levels[name] = c.GetEnforcementLevel()
	}

	return &emptypb.Empty{}, nil
}

// ConfigureStack takes what the stack is, and its configuration.
func (a *analyzer) ConfigureStack(
	_ context.Context, req *pulumirpc.AnalyzerStackConfigureRequest,
) (*pulumirpc.AnalyzerStackConfigureResponse, error) {
	name := req.GetStack()
	if req.GetOrganization() != "" && req.GetProject() != "" {
		name = req.GetOrganization() + "/" + req.GetProject() + "/" + name
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pack = Pack{Config: req.GetConfig(), Before: sync.OnceValues(func() (map[string]Machines, error) {
		return ReadState(context.Background(), name)
	})}

	return &pulumirpc.AnalyzerStackConfigureResponse{}, nil
}

// Analyze has every policy look at a resource.
func (a *analyzer) Analyze(_ context.Context, req *pulumirpc.AnalyzeRequest) (*pulumirpc.AnalyzeResponse, error) {
	inputs, err := plugin.UnmarshalProperties(req.GetProperties(), plugin.MarshalOptions{
		KeepUnknowns: true, KeepSecrets: true, KeepResources: true, KeepOutputValues: true,
	})
	if err != nil {
		return nil, fmt.Errorf("reading the inputs of %s: %w", req.GetUrn(), err)
	}
	r := Resource{URN: req.GetUrn(), Type: req.GetType(), Name: req.GetName(), Inputs: inputs}
	a.mu.Lock()
	defer a.mu.Unlock()
	response := &pulumirpc.AnalyzeResponse{}
	for _, p := range Policies() {
		level, given := a.levels[p.Name]
		if !given {
			level = pulumirpc.EnforcementLevel_MANDATORY
		}
		if level == pulumirpc.EnforcementLevel_DISABLED {
			continue
		}
		for _, message := range a.pack.Check(p, r) {
			response.Diagnostics = append(response.Diagnostics, &pulumirpc.AnalyzeDiagnostic{
				PolicyName: p.Name, PolicyPackName: Name, PolicyPackVersion: a.version, Description: p.Description,
				Message: message, EnforcementLevel: level, Urn: r.URN,
			})
		}
	}

	return response, nil
}

// Remediate changes nothing.
func (a *analyzer) Remediate(context.Context, *pulumirpc.AnalyzeRequest) (*pulumirpc.RemediateResponse, error) {
	return &pulumirpc.RemediateResponse{}, nil
}

// AnalyzeStack has nothing to add to what was said of each resource.
func (a *analyzer) AnalyzeStack(context.Context, *pulumirpc.AnalyzeStackRequest) (*pulumirpc.AnalyzeResponse, error) {
	return &pulumirpc.AnalyzeResponse{}, nil
}

// Cancel has nothing to end.
func (a *analyzer) Cancel(context.Context, *emptypb.Empty) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}
