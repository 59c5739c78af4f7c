// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Command pulumi-analyzer-policy-talos-proxmox runs the policy pack of the directory policy for Pulumi's engine, which finds
// it on PATH by the pack's runtime.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/talos-proxmox/talos-proxmox/policy"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	version := ""
	if info, ok := debug.ReadBuildInfo(); ok && len(info.Main.Version) > 1 && info.Main.Version[0] == 'v' {
		version = info.Main.Version[1:]
	}
	if err := policy.Serve(ctx, version, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}
