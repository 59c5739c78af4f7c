// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package kube runs the Kubernetes of the lab's clusters: a real API server with its controllers
// and etcd for each cluster, and a kubelet stand-in for each node.
package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

// startTimeout bounds [Start] when its context has no deadline.
const startTimeout = 90 * time.Second

// Config describes the Kubernetes of one cluster, as its control planes configure it.
type Config struct {
	// Name is the cluster's name, for messages. Required.
	Name string
	// Dir keeps the cluster's data; it belongs to this cluster alone and is created. Required.
	Dir string
	// Binary is the path of lab-kubernetes. Required.
	Binary string

	// CACert and CAKey (PEM) are the cluster's CA: it signs the serving certificate, the clients'
	// and what the CSR API signs. Required.
	CACert, CAKey []byte
	// AcceptedCAs (PEM) are further authorities whose clients are let in; nil for none.
	AcceptedCAs []byte
	// AggregatorCACert and AggregatorCAKey (PEM) are the front proxy's CA. Required.
	AggregatorCACert, AggregatorCAKey []byte
	// ServiceAccountKey (PEM) signs the service accounts' tokens. Required.
	ServiceAccountKey []byte

	// CertSANs are names and addresses of the serving certificate beyond those of loopback and of
	// the kubernetes Service.
	CertSANs []string
	// ServiceCIDRs is one range of each family; default 10.96.0.0/12.
	ServiceCIDRs []string
	// PodCIDRs is one range of each family, of which each node gets a part; default 10.244.0.0/16.
	PodCIDRs []string
	// DNSDomain is the domain of Services; default "cluster.local".
	DNSDomain string
	// EncryptionConfig is an EncryptionConfiguration (YAML); nil keeps secrets as they are.
	EncryptionConfig []byte
	// APIServerArgs are flags of kube-apiserver without dashes. A flag that it does not know, or one
	// that this package has to set itself, fails [Start].
	APIServerArgs map[string]string
	// AuditPolicy is an audit Policy (YAML); nil writes no audit log.
	AuditPolicy []byte
	// AdmissionConfig is an AdmissionConfiguration (YAML); nil leaves the admission plugins at their defaults.
	AdmissionConfig []byte
	// Version is what /version reports, "v1.35.0"; an older minor than the binary's is emulated, a
	// newer one fails [Start]. Empty: the binary's own.
	Version string
	// Restore is what [Cluster.Snapshot] returned; it replaces all data in Dir. Nil keeps the data.
	Restore []byte

	// Clock scales the waits of kubelets and controllers.
	Clock guest.Clock
	// Trace may be nil.
	Trace *guest.Trace
	// Images tells why a container image cannot be pulled, nil when it can. Nil: every image exists.
	Images func(ref string) error
	// Programs do the work of containers; none may be named.
	Programs []Program
}

// Cluster runs the Kubernetes of one cluster.
type Cluster struct {
	config  Config
	process *process
	admin   *rest.Config
	client  kubernetes.Interface
	issuer  *authority

	publishing sync.Mutex // one publication at a time, the latest last

	mu       sync.Mutex // guards what follows
	kubelets map[string]*run
	stopped  bool
}

// Start starts the control plane and returns when its API server is ready. The data of an earlier
// run in the same folder is kept, also after a crash. The error carries the end of its log.
func Start(ctx context.Context, c Config) (_ *Cluster, err error) {
	end := c.Trace.Begin("kubernetes.start", "cluster/"+c.Name, nil)
	defer func() { end(err) }()

	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("starting Kubernetes of cluster %q: %w", c.Name, err)
	}
	c = c.withDefaults()

	cluster := &Cluster{config: c, kubelets: map[string]*run{}}
	if err := cluster.start(ctx); err != nil {
		return nil, fmt.Errorf("starting Kubernetes of cluster %q: %w", c.Name, err)
	}

	return cluster, nil
}

func (c *Cluster) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	if err := os.MkdirAll(c.config.Dir, 0o700); err != nil {
		return fmt.Errorf("creating its folder: %w", err)
	}
	issuer, err := writeFiles(c.config)
	if err != nil {
		return err
	}
	c.issuer = issuer

	if c.process, err = startProcess(ctx, c.config.Binary, c.config.Dir); err != nil {
		return err
	}
	if err := c.connect(); err != nil {
		return errors.Join(err, c.process.stop())
	}
	if err := c.process.during(ctx, c.awaitReady); err != nil {
		return errors.Join(err, c.process.stop())
	}

	return nil
}

func (c *Cluster) connect() error {
	admin, err := c.clientConfig("lab-admin", "system:masters")
	if err != nil {
		return err
	}
	c.admin = admin

	c.client, err = kubernetes.NewForConfig(admin)

	return err
}

// clientConfig issues a client certificate for user in group.
func (c *Cluster) clientConfig(user, group string) (*rest.Config, error) {
	cert, key, err := c.issuer.client(user, group)
	if err != nil {
		return nil, err
	}

	return &rest.Config{
		Host:  "https://" + c.process.addr,
		QPS:   100,
		Burst: 200,
		// Loopback is no place for a proxy, whatever the environment says.
		Proxy: http.ProxyURL(nil),
		TLSClientConfig: rest.TLSClientConfig{
			CAData: c.config.CACert, CertData: cert, KeyData: key,
		},
	}, nil
}

func (c *Cluster) awaitReady(ctx context.Context) error {
	var last error

	err := poll(ctx, 50*time.Millisecond, func(ctx context.Context) bool {
		_, last = c.client.CoreV1().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)

		return last == nil
	})
	if err != nil {
		return fmt.Errorf("the API server did not get ready: %w", errors.Join(err, last))
	}

	return nil
}

// Addr returns the loopback host:port of the TLS API server.
func (c *Cluster) Addr() string { return c.process.addr }

// AdminConfig reaches the API server as a member of system:masters. Each call returns a copy.
func (c *Cluster) AdminConfig() *rest.Config { return rest.CopyConfig(c.admin) }

// Stop ends the kubelets and the control plane and keeps the data.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	c.stopped = true
	runs := make([]*run, 0, len(c.kubelets))
	for _, r := range c.kubelets {
		runs = append(runs, r)
	}
	c.mu.Unlock()

	for _, r := range runs {
		r.end(ErrStopped)
	}

	if err := c.process.stop(); err != nil {
		return fmt.Errorf("stopping Kubernetes of cluster %q: %w", c.config.Name, err)
	}

	return nil
}

// Destroy stops the cluster and removes its data.
func (c *Cluster) Destroy() error {
	return errors.Join(c.Stop(), os.RemoveAll(filepath.Clean(c.config.Dir)))
}

// poll calls done until it holds or ctx ends.
func poll(ctx context.Context, every time.Duration, done func(context.Context) bool) error {
	tick := time.NewTicker(every)
	defer tick.Stop()

	for !done(ctx) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}

	return nil
}
