// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

const (
	// kubeRetry is between attempts to start an API server.
	kubeRetry = 10 * time.Second
	// kubeLinger is how long, in real time, an API server outlives its last etcd member: a single
	// control plane that reboots need not pay for a new process.
	kubeLinger = 20 * time.Second
)

// Runner runs the Kubernetes of one etcd cluster while that has quorum.
type Runner struct {
	group Members
	opts  Options
	log   *slog.Logger
	dir   string
	clock guest.Clock
	trace *guest.Trace

	once   sync.Once
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	cluster Cluster
	client  *client // of the cluster
	config  Config
	digest  string
	err     error
	restore []byte
	sans    []string
	gone    time.Time
	changed chan struct{}
}

func NewRunner(
	g Members, o Options, log *slog.Logger, dir string, clock guest.Clock, trace *guest.Trace,
) *Runner {
	return &Runner{
		group: g, opts: o, log: log, dir: dir, clock: clock, trace: trace,
		done: make(chan struct{}), changed: make(chan struct{}),
	}
}

func (k *Runner) SetRestore(snapshot []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.restore = snapshot
}

// Ensure starts looking after the API server; only the first call does.
func (k *Runner) Ensure() {
	k.once.Do(func() {
		ctx, cancel := context.WithCancel(context.Background())
		k.mu.Lock()
		k.cancel = cancel
		k.mu.Unlock()

		go func() {
			defer close(k.done)
			go k.applyManifests(ctx)
			k.run(ctx)
		}()
	})
}

// API returns the running cluster, nil while there is none, and a channel that closes when that changes.
func (k *Runner) API() (Cluster, <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()

	return k.cluster, k.changed
}

// Status returns the version that runs, "" when none, and why it does not run.
func (k *Runner) Status() (version string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()

	if k.cluster == nil {
		return "", k.err
	}

	return k.config.Version, nil
}

func (k *Runner) set(c Cluster, cfg Config, digest string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()

	k.cluster, k.config, k.digest, k.err = c, cfg, digest, err
	k.setClient(c)
	if c != nil {
		k.restore = nil
	}
	close(k.changed)
	k.changed = make(chan struct{})
}

func (k *Runner) run(ctx context.Context) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()

	for ctx.Err() == nil {
		changed := k.group.Watch()
		if err := k.reconcile(ctx); err != nil && ctx.Err() == nil {
			k.log.Warn("starting Kubernetes", "cluster", k.group.TalosID(), "error", err)
			_ = k.clock.Sleep(ctx, kubeRetry) // ends early with ctx
		}

		select {
		case <-ctx.Done():
		case <-changed:
		case <-tick.C:
		}
	}
}

func (k *Runner) reconcile(ctx context.Context) error {
	nodes := k.group.RunningNodes()
	k.mu.Lock()
	have, digest, restore := k.cluster, k.digest, k.restore
	if len(nodes) > 0 {
		k.gone = time.Time{}
	} else if k.gone.IsZero() {
		k.gone = time.Now()
	}
	lingering := !k.gone.IsZero() && time.Since(k.gone) < kubeLinger
	k.mu.Unlock()

	if len(nodes) == 0 {
		if have != nil && !lingering {
			return k.stop(nil)
		}

		return nil
	}
	if !k.group.Quorum() {
		return nil
	}

	cfg, err := clusterConfig(nodes, k.group.ConfiguredNodes())
	if err != nil {
		k.set(nil, cfg, "", err)

		return err
	}
	missing := k.missing(cfg.CertSANs)
	cfg.CertSANs = k.allSANs(append(cfg.CertSANs, k.group.MemberNames()...))
	cfg.Dir, cfg.Clock, cfg.Trace = filepath.Join(k.dir, "kubernetes"), k.clock, k.trace

	want := configDigest(cfg)
	if have != nil && want == digest && !missing {
		return nil
	}
	if have != nil {
		if err := k.stop(nil); err != nil {
			return err
		}
	}
	cfg.Restore = restore

	return k.start(ctx, cfg, want)
}

func (k *Runner) start(ctx context.Context, cfg Config, digest string) error {
	end := k.trace.Begin("kube.start", "cluster/"+cfg.Name, map[string]string{"version": cfg.Version})
	c, err := k.opts.Kubernetes.Start(ctx, cfg)
	if err != nil {
		err = fmt.Errorf("starting the API server of cluster %q: %w", cfg.Name, err)
		k.set(nil, cfg, "", err)
		end(err)

		return err
	}
	end(nil)
	k.set(c, cfg, digest, nil)

	return nil
}

func (k *Runner) stop(reason error) error {
	k.mu.Lock()
	have, cfg := k.cluster, k.config
	k.mu.Unlock()

	if have == nil {
		return nil
	}
	k.set(nil, cfg, "", reason)
	if err := have.Stop(); err != nil {
		return fmt.Errorf("stopping the API server of cluster %q: %w", cfg.Name, err)
	}

	return nil
}

// halt ends the runner; afterwards nothing starts again.
func (k *Runner) halt() {
	k.once.Do(func() { close(k.done) })
	k.mu.Lock()
	cancel := k.cancel
	k.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	<-k.done
}

func (k *Runner) Close() error {
	k.halt()

	return k.stop(errors.New("the site was closed"))
}

func (k *Runner) Destroy() error {
	k.halt()
	k.mu.Lock()
	have, cfg := k.cluster, k.config
	k.mu.Unlock()
	if have == nil {
		return nil
	}

	k.set(nil, cfg, "", errors.New("the cluster's data are gone"))
	if err := have.Destroy(); err != nil {
		return fmt.Errorf("destroying the API server of cluster %q: %w", cfg.Name, err)
	}

	return nil
}

// Name returns the cluster's name as its API server was last configured.
func (k *Runner) Name() string {
	k.mu.Lock()
	defer k.mu.Unlock()

	return k.config.Name
}
