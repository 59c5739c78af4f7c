// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/talos-proxmox/talos-proxmox/lab/flux"
	"github.com/talos-proxmox/talos-proxmox/lab/kube"
)

// beside is what runs Flux's controllers beside a cluster; nil where the programs were not built, and
// the pods of Flux then do nothing.
func (d *daemon) beside() (func(ctx context.Context, c *kube.Cluster, dir string), error) {
	programs, err := tool("flux-controllers", "LAB_FLUX_CONTROLLERS")
	if err != nil || !flux.There(programs) {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}

	return func(ctx context.Context, c *kube.Cluster, dir string) {
		err := flux.Run(ctx, flux.Config{
			Admin: c.AdminConfig(), Dir: filepath.Join(d.path("flux"), filepath.Base(dir)), Programs: programs,
			Environment: d.wayIn(), Supervisor: []string{self, "supervise"}, Log: d.log,
		})
		if err != nil {
			d.log.Error("Flux does not run beside the cluster", "error", err)
		}
	}, nil
}

// wayIn leads a program of the lab into the site. SSH knows no proxy but SOCKS.
func (d *daemon) wayIn() []string {
	return []string{
		"HTTPS_PROXY=" + d.gateway.URL(), "HTTP_PROXY=" + d.gateway.URL(), "ALL_PROXY=" + d.socks.URL(),
		"NO_PROXY=localhost,127.0.0.1,::1", "SSL_CERT_FILE=" + d.authority.BundlePath(),
	}
}
