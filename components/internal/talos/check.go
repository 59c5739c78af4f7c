// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/preflight"
	"github.com/talos-proxmox/talos-proxmox/internal/rules"
)

// Request describes the cluster that a caller asks for.
type Request struct {
	// Name of the cluster in errors.
	Name string
	preflight.Request
}

// Checked holds what configurations and day-0 manifests are made from.
type Checked struct{ preflight.Made }

// Check finds everything that is wrong with a cluster, Talos's own rules included, before anything is
// registered. It renders every node's configuration with throw-away secrets.
func Check(ctx context.Context, r Request) (*Checked, error) {
	var problems check.List
	rules.CheckAll(r.Config, rules.Inputs{ReadFile: r.ReadFile}, &problems)
	subject := "cluster " + r.Name
	if broken := problems.Paths(); len(broken) > 0 {
		preflight.Beside(ctx, broken, r.Request, &problems)

		return nil, problems.Err(subject)
	}
	made := preflight.Check(ctx, r.Request, &problems)
	if err := problems.Err(subject); err != nil {
		return nil, err
	}

	return &Checked{made}, nil
}
