// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talosapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
)

// BootstrapManifests returns the objects that Talos brings to the cluster, as the first control plane that answers
// renders them, in the order in which Talos creates them.
func (r *Remote) BootstrapManifests(ctx context.Context) ([]map[string]any, error) {
	var errs []error
	for _, m := range r.planes {
		objects, err := r.client.bootstrapManifests(ctx, m.Address)
		if err == nil {
			return objects, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", m, err))
	}

	return nil, fmt.Errorf("no control plane says what Talos brings to Kubernetes: %w", errors.Join(errs...))
}

func (c *Client) bootstrapManifests(ctx context.Context, address string) ([]map[string]any, error) {
	node, err := c.node(ctx, address)
	if err != nil {
		return nil, err
	}
	list, err := safe.StateListAll[*k8s.Manifest](ctx, node.COSI)
	if err != nil {
		return nil, fmt.Errorf("asking for the bootstrap manifests: %w", err)
	}
	manifests := slices.SortedFunc(list.All(), func(a, b *k8s.Manifest) int {
		return strings.Compare(a.Metadata().ID(), b.Metadata().ID())
	})
	var objects []map[string]any
	for _, m := range manifests {
		for _, item := range m.TypedSpec().Items {
			objects = append(objects, item.Object)
		}
	}

	return objects, nil
}
