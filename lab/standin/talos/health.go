// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/client"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// How long one check may take, and the pause between two looks.
const (
	checkTimeout = 5 * time.Minute
	checkPause   = time.Second
)

// checkup runs the health checks of a cluster.
type checkup struct {
	client       *client.Client
	controlPlane []string
	workers      []string
}

func (h *checkup) all() []string { return slices.Concat(h.controlPlane, h.workers) }

// check names one thing that must hold.
type check struct {
	what    string
	timeout time.Duration
	holds   func(context.Context, *checkup) error
}

// clusterHealth waits until the cluster is healthy: etcd, Talos, and unless told otherwise Kubernetes.
func clusterHealth(ctx context.Context, op *bridge.Op) (bridge.Tree, error) {
	timeout, err := timeoutOf(op.In, "timeouts.read")
	if err != nil {
		return nil, err
	}

	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	cfg, err := clientConfig("dynamic", op.In.Sub("clientConfiguration"))
	if err != nil {
		return nil, err
	}

	c, err := client.New(ctx, client.WithConfig(cfg), client.WithEndpoints(op.In.Strs("endpoints")...))
	if err != nil {
		return nil, fmt.Errorf("failed to create talos client: %w", err)
	}
	defer c.Close() //nolint:errcheck // nothing is lost

	h := &checkup{
		client: c, controlPlane: op.In.Strs("controlPlaneNodes"), workers: op.In.Strs("workerNodes"),
	}
	for _, n := range h.all() {
		if _, err := netip.ParseAddr(n); err != nil {
			return nil, fmt.Errorf("failed to generate node infos: %w", err)
		}
	}

	checks := slices.Concat(nodeChecks(), componentChecks())
	if !op.In.Bool("skipKubernetesChecks") {
		checks = append(checks, clusterChecks()...)
	}

	for _, k := range checks {
		if err := k.await(ctx, h); err != nil {
			return nil, fmt.Errorf("cluster health check failed: waiting for %s: %w", k.what, err)
		}
	}

	return merged(op.In, bridge.Tree{"id": "cluster_health"}), nil
}

// await polls a check until it holds; the error is the last one it gave.
func (k check) await(ctx context.Context, h *checkup) error {
	limit := k.timeout
	if limit == 0 {
		limit = checkTimeout
	}

	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	tick := time.NewTicker(checkPause)
	defer tick.Stop()

	var last error
	for {
		err := k.holds(ctx, h)
		if err == nil || errors.Is(err, errSkipped) {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}

		select {
		case <-ctx.Done():
			return last
		case <-tick.C:
		}
	}
}

// errSkipped: the node does not let us look.
var errSkipped = errors.New("skipped")
