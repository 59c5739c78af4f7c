// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kubernetes

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/blang/semver"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
	"github.com/talos-proxmox/talos-proxmox/lab/standin/wire"
)

const pluginVersion = "4.33.0"

// releaseToken is the one kind that is no Kubernetes object.
const releaseToken = "kubernetes:helm.sh/v3:Release"

// provider serves the plugin's protocol on one connection.
type provider struct {
	plugin.UnimplementedProvider

	conn *wire.Conn

	mu      sync.Mutex
	cluster *cluster
}

// New makes the provider for a connection.
func New(conn *wire.Conn) plugin.GrpcProvider { return &provider{conn: conn} }

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

	return &plugin.ProviderHandshakeResponse{AcceptSecrets: true}, nil
}

// GetPluginInfo tells the version that the stand-in stands for.
func (p *provider) GetPluginInfo(context.Context) (plugin.PluginInfo, error) {
	v, err := semver.Parse(pluginVersion)
	return plugin.PluginInfo{Version: &v}, err
}

// Configure takes the configuration and asks the cluster whether it is there. One that is not leaves
// the provider in a mode in which previews work and nothing else does.
func (p *provider) Configure(ctx context.Context, req plugin.ConfigureRequest) (plugin.ConfigureResponse, error) {
	t, err := configType()
	if err != nil {
		return plugin.ConfigureResponse{}, err
	}

	c, err := connect(ctx, bridge.TreeOf(bridge.DecodeConfig(t, req.Inputs)), req.Inputs.ContainsUnknowns())
	if err != nil {
		return plugin.ConfigureResponse{}, err
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	p.cluster = c

	return plugin.ConfigureResponse{}, nil
}

func (p *provider) configured() (*cluster, error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.cluster == nil {
		return nil, fmt.Errorf("the provider kubernetes is not configured on this connection")
	}

	return p.cluster, nil
}

// kindOf reads apiVersion and kind out of a token: kubernetes:apps/v1:Deployment.
func kindOf(token string) (apiVersion, kind string, err error) {
	parts := strings.Split(token, ":")
	if len(parts) != 3 {
		return "", "", fmt.Errorf("%s: not a type of the provider kubernetes", token)
	}

	apiVersion, kind = parts[1], parts[2]
	if !strings.Contains(apiVersion, "/") { // the first group is called core here
		return "", "", fmt.Errorf("apiVersion does not have both a group and a version: %q", apiVersion)
	}
	apiVersion = strings.TrimPrefix(apiVersion, "core/")

	// The SDK knows these groups without their domain.
	group, version, grouped := strings.Cut(apiVersion, "/")
	if full, ok := shortGroups()[group]; grouped && ok {
		apiVersion = full + "/" + version
	}

	if strings.HasSuffix(apiVersion, "helm.sh/v4") || strings.HasPrefix(apiVersion, "yaml") ||
		strings.HasPrefix(apiVersion, "kustomize/") || (strings.HasSuffix(kind, "Patch") && kind != "Patch") {
		return "", "", fmt.Errorf("the lab's stand-in for the provider kubernetes does not serve %s: "+
			"use the genuine plugin (lab exec --providers real)", token)
	}

	return apiVersion, kind, nil
}

func shortGroups() map[string]string {
	return map[string]string{
		"admissionregistration": "admissionregistration.k8s.io", "apiextensions": "apiextensions.k8s.io",
		"apiregistration": "apiregistration.k8s.io", "authentication": "authentication.k8s.io",
		"authorization": "authorization.k8s.io", "certificates": "certificates.k8s.io",
		"coordination": "coordination.k8s.io", "discovery": "discovery.k8s.io", "events": "events.k8s.io",
		"flowcontrol": "flowcontrol.apiserver.k8s.io", "networking": "networking.k8s.io", "node": "node.k8s.io",
		"rbac": "rbac.authorization.k8s.io", "resource": "resource.k8s.io", "scheduling": "scheduling.k8s.io",
		"storage": "storage.k8s.io",
	}
}

// bookkeeping of the plugin in states.
const (
	keyManager    = resource.PropertyKey("__fieldManager")
	keyAPIVersion = resource.PropertyKey("__initialApiVersion")
)
