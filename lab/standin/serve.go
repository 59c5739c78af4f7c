// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package standin

import (
	"context"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
	"github.com/talos-proxmox/talos-proxmox/lab/standin/talos"
	"github.com/talos-proxmox/talos-proxmox/lab/standin/wire"
)

// Serve serves the provider called name ("proxmoxve", "talos" or "kubernetes") on a free loopback
// port until ctx ends, for engines that attach by PULUMI_DEBUG_PROVIDERS=name:port. The channel gets
// one value when serving has ended: nil after ctx, else why.
func Serve(ctx context.Context, name string) (port int, done <-chan error, err error) {
	switch name {
	case "talos":
		pkg := talos.Package()
		return wire.Serve(ctx, func(c *wire.Conn) plugin.Provider { return bridge.New(pkg, c) })
	}

	return 0, nil, fmt.Errorf("there is no stand-in for the provider %q", name)
}
