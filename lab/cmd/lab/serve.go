// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/talos-proxmox/talos-proxmox/lab/daemon"
	"github.com/talos-proxmox/talos-proxmox/lab/tools"
)

// serve runs the lab until it is told to stop.
func serve(o options) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding the lab's own program: %w", err)
	}
	bin, err := tools.Beside()
	if err != nil {
		return err // says what it is about
	}
	kubernetes, err := bin.Find(tools.Kubernetes)
	if err != nil {
		return err // says what to do
	}

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	// says what it is about
	return daemon.Serve(ctx, daemon.Options{
		Dir: o.site, Speed: o.speed, Steps: o.steps, Kubernetes: kubernetes, Charts: bin.Path(tools.Charts),
		Flux: bin.Path(tools.Flux), Program: self,
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
}

// stop ends the running lab and waits until it has.
func stop(o options) error {
	err := o.siteDir().Stop()
	switch {
	case errors.Is(err, daemon.ErrNotRunning):
		fmt.Println("no lab runs on", o.site)
	case err != nil:
		return err // says what it is about
	default:
		fmt.Println("the lab on", o.site, "has stopped")
	}

	return nil
}
