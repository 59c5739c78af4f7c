// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/klog/v2"
)

// shutdownGrace is how long the components get to end by themselves.
const shutdownGrace = 3 * time.Second

// controlPlane runs a control plane until stdin closes, so that it never outlives its parent, or a
// signal comes. It prints one line of JSON with the address once the port is taken.
func controlPlane(args []string) error {
	c, err := loadConfig(args)
	if err != nil {
		return err
	}

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // returns when the parent is gone
		stop()
		time.Sleep(2 * shutdownGrace)
		os.Exit(1)
	}()

	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("taking a port for the API server: %w", err)
	}
	parts, err := parseComponents(c, listener)
	if err != nil {
		return err
	}
	if err := announce(listener.Addr()); err != nil {
		return err
	}

	etcd, err := startEtcd(ctx)
	if err != nil {
		return err
	}
	defer etcd.Close()

	return run(ctx, parts)
}

func announce(addr net.Addr) error {
	return json.NewEncoder(os.Stdout).Encode(map[string]string{"address": addr.String()})
}

// run runs the components until ctx ends or one of them does.
func run(ctx context.Context, parts *components) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	ended := make(chan error, 3)
	for _, part := range []func(context.Context) error{
		parts.runAPIServer, parts.runControllerManager, parts.runScheduler,
	} {
		go func() { ended <- part(ctx) }()
	}

	select {
	case err := <-ended:
		if ctx.Err() == nil {
			return errors.Join(errors.New("a component ended"), err)
		}
	case <-ctx.Done():
	}
	klog.Flush()

	// The API server ends last, after its watches; etcd must stay until then.
	select {
	case <-ended:
	case <-time.After(shutdownGrace):
	}

	return nil
}
