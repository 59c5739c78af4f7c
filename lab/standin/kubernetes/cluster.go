// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// greeting bounds the first look at a cluster.
const greeting = 10 * time.Second

// Requests a second that the client allows itself, and at once.
const (
	clientQPS   = 50
	clientBurst = 100
)

// cluster holds the clients of a configured cluster.
type cluster struct {
	// unreachable says why the cluster does not answer; "" when it does.
	unreachable string

	deleteUnreachable, skipUpdateUnreachable bool
	configMapMutable, secretMutable          bool
	serverSideApply                          bool
	namespace                                string

	kubeconfig clientcmd.ClientConfig
	rest       *rest.Config
	dynamic    dynamic.Interface
	discovery  discovery.CachedDiscoveryInterface
	mapper     meta.ResettableRESTMapper
}

// connect reads the configuration and greets the cluster. Only a kubeconfig that makes no sense is an
// error; a cluster that does not answer is not.
func connect(ctx context.Context, config bridge.Tree, unknown bool) (*cluster, error) {
	c := &cluster{
		deleteUnreachable:     flag(config, "deleteUnreachable", "PULUMI_K8S_DELETE_UNREACHABLE", false),
		skipUpdateUnreachable: flag(config, "skipUpdateUnreachable", "PULUMI_K8S_SKIP_UPDATE_UNREACHABLE", false),
		configMapMutable:      flag(config, "enableConfigMapMutable", "PULUMI_K8S_ENABLE_CONFIGMAP_MUTABLE", false),
		secretMutable:         flag(config, "enableSecretMutable", "PULUMI_K8S_ENABLE_SECRET_MUTABLE", false),
		serverSideApply:       flag(config, "enableServerSideApply", "PULUMI_K8S_ENABLE_SERVER_SIDE_APPLY", true),
		namespace:             config.Str("namespace"),
	}

	if unknown && config.Str("kubeconfig") == "" {
		c.unreachable = "the kubeconfig is not known yet"
		return c, nil
	}

	raw, err := loadKubeconfig(config.Str("kubeconfig"))
	if err != nil {
		c.unreachable = "failed to parse kubeconfig data in `kubernetes:config:kubeconfig`"
		return c, nil //nolint:nilerr // the cause would quote it
	}

	overrides := &clientcmd.ConfigOverrides{CurrentContext: config.Str("context")}
	if name := config.Str("cluster"); name != "" {
		overrides.Context = clientcmdapi.Context{Cluster: name}
	}
	c.kubeconfig = clientcmd.NewDefaultClientConfig(*raw, overrides)

	if c.namespace == "" {
		if c.namespace, _, err = c.kubeconfig.Namespace(); err != nil {
			c.namespace = metav1.NamespaceDefault
		}
	}

	return c, c.greet(ctx)
}

// greet makes the clients and asks for the version.
func (c *cluster) greet(ctx context.Context) error {
	cfg, err := c.kubeconfig.ClientConfig()
	if err != nil {
		c.unreachable = fmt.Sprintf("unable to load Kubernetes client configuration from kubeconfig file: %v", err)
		return nil
	}
	cfg.QPS, cfg.Burst = clientQPS, clientBurst
	cfg.WarningHandler = rest.NoWarnings{}
	c.rest = cfg

	client, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return fmt.Errorf("making a client of the cluster: %w", err)
	}
	c.discovery = memory.NewMemCacheClient(client)
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(c.discovery)

	if c.dynamic, err = dynamic.NewForConfig(cfg); err != nil {
		return fmt.Errorf("making a client of the cluster: %w", err)
	}

	ctx, cancel := context.WithTimeout(ctx, greeting)
	defer cancel()

	if err := client.RESTClient().Get().AbsPath("/version").Do(ctx).Error(); err != nil {
		c.unreachable = fmt.Sprintf("unable to load schema information from the API server: %v", err)
	}

	return nil
}

// errUnreachable returns what an operation on a cluster that does not answer ends with.
func (c *cluster) errUnreachable() error {
	return errors.New("configured Kubernetes cluster is unreachable: " + c.unreachable)
}

// resourceOf finds the collection of a kind; the error is a no-match error for one that is not there.
func (c *cluster) resourceOf(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	m, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		c.mapper.Reset() // it may have been added since
		m, err = c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}

	return m, err
}

// client returns a client of the collection in a namespace.
func (c *cluster) client(gvk schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	m, err := c.resourceOf(gvk)
	if err != nil {
		return nil, err
	}

	all := c.dynamic.Resource(m.Resource)
	if m.Scope.Name() == meta.RESTScopeNameRoot {
		return all, nil
	}
	if namespace == "" {
		namespace = c.namespace
	}

	return all.Namespace(namespace), nil
}
