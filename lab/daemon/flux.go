// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package daemon

import (
	"context"
	"path/filepath"

	"github.com/talos-proxmox/talos-proxmox/lab/flux"
	"github.com/talos-proxmox/talos-proxmox/lab/kube"
)

// beside returns what runs Flux's controllers beside a cluster; nil where the programs were not built, and
// the pods of Flux then do nothing.
func (d *Daemon) beside() func(ctx context.Context, c *kube.Cluster, dir string) {
	if !flux.There(d.opts.Flux) || d.opts.Program == "" {
		return nil
	}

	return func(ctx context.Context, c *kube.Cluster, dir string) {
		err := flux.Run(ctx, flux.Config{
			Admin: c.AdminConfig(), Dir: filepath.Join(d.path("flux"), filepath.Base(dir)), Programs: d.opts.Flux,
			Environment: d.wayIn(), Supervisor: []string{d.opts.Program, "supervise"}, Log: d.opts.Log,
		})
		if err != nil {
			d.opts.Log.Error("Flux does not run beside the cluster", "error", err)
		}
	}
}

// wayIn leads a program of the lab into the site. SSH knows no proxy but SOCKS.
func (d *Daemon) wayIn() []string {
	return []string{
		"HTTPS_PROXY=" + d.gateway.URL(), "HTTP_PROXY=" + d.gateway.URL(), "ALL_PROXY=" + d.socks.URL(),
		"NO_PROXY=localhost,127.0.0.1,::1", "SSL_CERT_FILE=" + d.authority.BundlePath(),
	}
}
