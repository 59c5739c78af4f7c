// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package ciliumcli

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// getter hands Helm the API as the container reaches it.
type getter struct {
	api       *rest.Config
	namespace string
}

func newGetter(api *rest.Config, namespace string) getter {
	return getter{api: api, namespace: namespace}
}

func (g getter) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(g.api), nil }

func (g getter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	client, err := discovery.NewDiscoveryClientForConfig(g.api)
	if err != nil {
		return nil, fmt.Errorf("preparing to ask the API server: %w", err)
	}

	return memory.NewMemCacheClient(client), nil
}

func (g getter) ToRESTMapper() (meta.RESTMapper, error) {
	client, err := g.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}

	return restmapper.NewDeferredDiscoveryRESTMapper(client), nil
}

// ToRawKubeConfigLoader says nothing but the namespace.
func (g getter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	var overrides clientcmd.ConfigOverrides
	overrides.Context.Namespace = g.namespace

	return clientcmd.NewDefaultClientConfig(clientcmdapi.Config{}, &overrides)
}
