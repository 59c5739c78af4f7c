// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"fmt"
	"net/http"

	sdk "github.com/pulumiverse/pulumi-talos/sdk/go/talos"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/client"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/cluster"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/imagefactory"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"
	factory "github.com/siderolabs/image-factory/pkg/client"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
	"github.com/talos-proxmox/talos-proxmox/lab/standin/wire"
)

// What the genuine plugin was built with; it shows in generated configurations.
const (
	pluginVersion     = "0.7.1"
	defaultContract   = "v1.12"
	defaultInstaller  = "ghcr.io/siderolabs/installer:v1.12.0"
	defaultKubernetes = "1.35.0"
	defaultFactory    = "https://factory.talos.dev"
)

// session holds a configured provider.
type session struct {
	factory *factory.Client
}

// Package returns the provider talos.
func Package() *bridge.Package {
	return &bridge.Package{
		Name: "talos", Version: pluginVersion,
		Config: sdk.ProviderArgs{},
		Configure: func(_ *wire.Conn, config bridge.Tree) (any, error) {
			url := config.Str("imageFactoryUrl")
			if url == "" {
				url = defaultFactory
			}

			c, err := factory.New(url, factory.WithClient(http.Client{}))
			if err != nil {
				return nil, fmt.Errorf("imageFactoryUrl %q: %w", url, err)
			}

			return &session{factory: c}, nil
		},
		Resources: resources(),
		Functions: functions(),
	}
}

func resources() map[string]*bridge.Resource {
	return map[string]*bridge.Resource{
		"talos:machine/secrets:Secrets":                       machineSecrets(),
		"talos:machine/configurationApply:ConfigurationApply": configurationApply(),
		"talos:machine/bootstrap:Bootstrap":                   bootstrap(),
		"talos:cluster/kubeconfig:Kubeconfig":                 kubeconfig(),
		"talos:imageFactory/schematic:Schematic":              schematicResource(),
	}
}

func functions() map[string]*bridge.Function {
	return map[string]*bridge.Function{
		"talos:machine/getConfiguration:getConfiguration": {
			Args: machine.GetConfigurationArgs{}, Result: machine.GetConfigurationResult{}, Call: machineConfiguration,
		},
		"talos:client/getConfiguration:getConfiguration": {
			Args: client.GetConfigurationArgs{}, Result: client.GetConfigurationResult{}, Call: talosConfig,
		},
		"talos:imageFactory/getUrls:getUrls": {
			Args: imagefactory.GetUrlsArgs{}, Result: imagefactory.GetUrlsResult{}, Call: imageURLs,
		},
		"talos:imageFactory/getVersions:getVersions": {
			Args: imagefactory.GetVersionsArgs{}, Result: imagefactory.GetVersionsResult{}, Call: factoryVersions,
		},
		"talos:imageFactory/getExtensionsVersions:getExtensionsVersions": {
			Args:   imagefactory.GetExtensionsVersionsArgs{},
			Result: imagefactory.GetExtensionsVersionsResult{}, Call: factoryExtensions,
		},
		"talos:imageFactory/getOverlaysVersions:getOverlaysVersions": {
			Args:   imagefactory.GetOverlaysVersionsArgs{},
			Result: imagefactory.GetOverlaysVersionsResult{}, Call: factoryOverlays,
		},
		"talos:cluster/getHealth:getHealth": {
			Args: cluster.GetHealthArgs{}, Result: cluster.GetHealthResult{},
			Required: []string{"controlPlaneNodes", "endpoints"}, Call: clusterHealth,
		},
		"talos:cluster/getKubeconfig:getKubeconfig": {
			Args: cluster.LookupKubeconfigArgs{}, Result: cluster.LookupKubeconfigResult{}, Call: lookupKubeconfig,
		},
		"talos:machine/getDisks:getDisks": {
			Args: machine.GetDisksArgs{}, Result: machine.GetDisksResult{}, Call: machineDisks,
		},
	}
}

func sessionOf(op *bridge.Op) (*session, error) {
	s, ok := op.Client.(*session)
	if !ok {
		return nil, fmt.Errorf("the provider is not configured")
	}

	return s, nil
}
