// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talosapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

// Remote opens the APIs of a cluster with a talosconfig. The Kubernetes credentials come from the
// first control plane that gives them.
type Remote struct {
	planes []cluster.Member
	client *Client

	// stale reports whether the endpoint did not answer: an edit may have moved it.
	stale atomic.Bool

	mu         sync.Mutex
	config     *rest.Config
	kubernetes kubernetes.Interface
	objects    dynamic.Interface
	mapper     meta.ResettableRESTMapper
}

// NewRemote reads the talosconfig; it dials nothing yet.
func NewRemote(talosconfig string, c cluster.Cluster) (*Remote, error) {
	api, err := NewClient(talosconfig)
	if err != nil {
		return nil, err
	}

	return &Remote{planes: c.ControlPlanes(), client: api}, nil
}

// Close ends every connection.
func (r *Remote) Close() error { return r.client.Close() }

// Talos returns the cluster's Talos API.
func (r *Remote) Talos(context.Context) (cluster.Talos, error) { return r.client, nil }

// Kubernetes returns the cluster's Kubernetes API, at the cluster's endpoint.
func (r *Remote) Kubernetes(ctx context.Context) (kubernetes.Interface, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.renew(ctx)
	if r.kubernetes != nil {
		return r.kubernetes, nil
	}
	config, err := r.restConfig(ctx)
	if err != nil {
		return nil, err
	}
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("opening the Kubernetes API: %w", err)
	}
	r.kubernetes = api

	return api, nil
}

// Objects returns a client of the same API for objects of any kind.
func (r *Remote) Objects(ctx context.Context) (dynamic.Interface, meta.ResettableRESTMapper, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.renew(ctx)
	if r.objects != nil {
		return r.objects, r.mapper, nil
	}
	config, err := r.restConfig(ctx)
	if err != nil {
		return nil, nil, err
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the Kubernetes API: %w", err)
	}
	api, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the Kubernetes API: %w", err)
	}
	r.objects, r.mapper = api, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kinds))

	return r.objects, r.mapper, nil
}

// Redial has later calls to a node, and to the Kubernetes API, open connections of their own.
func (r *Remote) Redial(address string) {
	r.client.Redial(address)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.config == nil {
		return
	}
	if transport, err := rest.TransportFor(r.config); err == nil { // the one that its clients share
		utilnet.CloseIdleConnectionsFor(transport)
	}
}

// restConfig returns the Kubernetes credentials that the first answering control plane issues. The caller
// holds the lock.
func (r *Remote) restConfig(ctx context.Context) (*rest.Config, error) {
	if r.config != nil {
		return r.config, nil
	}
	var errs []error
	for _, m := range r.planes {
		kubeconfig, err := r.client.Kubeconfig(ctx, m.Address)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m, err))

			continue
		}
		config, err := RESTConfig(kubeconfig)
		if err != nil {
			return nil, err
		}
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return watchTransport{next: next, failed: &r.stale} })
		r.config = config

		return r.config, nil
	}

	return nil, fmt.Errorf("no control plane gives access to Kubernetes: %w", errors.Join(errs...))
}

// renewTimeout bounds the question for a newer kubeconfig, of each control plane.
const renewTimeout = 3 * time.Second

// renew opens the API anew where it is reached at another endpoint than before. The caller holds the lock.
func (r *Remote) renew(ctx context.Context) {
	if r.config == nil || !r.stale.Swap(false) {
		return
	}
	for _, m := range r.planes {
		calling, cancel := context.WithTimeout(ctx, renewTimeout)
		kubeconfig, err := r.client.Kubeconfig(calling, m.Address)
		cancel()
		if err != nil {
			continue
		}
		if now, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig); err == nil && now.Host != r.config.Host {
			r.config, r.kubernetes, r.objects, r.mapper = nil, nil, nil, nil
		}

		return
	}
}

// watchTransport notes requests that nobody answered.
type watchTransport struct {
	next   http.RoundTripper
	failed *atomic.Bool
}

// RoundTrip implements [http.RoundTripper].
func (t watchTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err != nil {
		t.failed.Store(true)
	}

	return response, err
}

// WrappedRoundTripper implements [utilnet.RoundTripperWrapper].
func (t watchTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// Metrics returns the metrics of the API server behind the cluster's endpoint, in Prometheus's text format.
func (r *Remote) Metrics(ctx context.Context) ([]byte, error) {
	api, err := r.Kubernetes(ctx)
	if err != nil {
		return nil, err
	}
	text, err := api.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking the API server for its metrics: %w", err)
	}

	return text, nil
}

// requestTimeout bounds one request to the Kubernetes API, retries included. It is longer than the VIP takes
// to move to another control plane.
const requestTimeout = 90 * time.Second

// RESTConfig reads a kubeconfig and adds the timeouts and retries of this package.
func RESTConfig(kubeconfig []byte) (*rest.Config, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.Timeout = requestTimeout
	config.UserAgent = "talos-proxmox"
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return retryTransport{next: next, pause: time.Second}
	})

	return config, nil
}
