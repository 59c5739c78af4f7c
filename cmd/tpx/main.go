// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Command tpx does what Pulumi does not: it checks hosts before the first up, names what was changed by
// hand, adopts machines, lists what will be pulled, hands out access to clusters, and backs up etcd.
//
//	go install github.com/talos-proxmox/talos-proxmox/cmd/tpx@latest
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
