// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package standin

import (
	"context"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
	"github.com/talos-proxmox/talos-proxmox/lab/standin/githost"
	"github.com/talos-proxmox/talos-proxmox/lab/standin/kubernetes"
	"github.com/talos-proxmox/talos-proxmox/lab/standin/proxmoxve"
	"github.com/talos-proxmox/talos-proxmox/lab/standin/talos"
	"github.com/talos-proxmox/talos-proxmox/lab/standin/wire"
)

// Serve serves the provider called name ("proxmoxve", "talos", "kubernetes", "github", "gitlab" or
// "command") on a free loopback port until ctx ends, for engines that attach by PULUMI_DEBUG_PROVIDERS=name:port. calls counts what
// they call. The channel gets one value when serving has ended: nil after ctx, else why.
func Serve(ctx context.Context, name string, calls *wire.Calls) (port int, done <-chan error, err error) {
	switch name {
	case "proxmoxve":
		return wire.Serve(ctx, bridged(proxmoxve.Package()), calls)
	case "kubernetes":
		return wire.Serve(ctx, func(c *wire.Conn) plugin.Provider { return kubernetes.New(c) }, calls)
	case "github":
		return wire.Serve(ctx, bridged(githost.GitHub()), calls)
	case "gitlab":
		return wire.Serve(ctx, bridged(githost.GitLab()), calls)
	case "command":
		return wire.Serve(ctx, bridged(githost.Command()), calls)
	case "talos":
		return wire.Serve(ctx, bridged(talos.Package()), calls)
	}

	return 0, nil, fmt.Errorf("there is no stand-in for the provider %q", name)
}

func bridged(pkg *bridge.Package) func(*wire.Conn) plugin.Provider {
	return func(c *wire.Conn) plugin.Provider { return bridge.New(pkg, c) }
}
