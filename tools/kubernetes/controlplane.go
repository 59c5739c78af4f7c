// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc/grpclog"
	"k8s.io/klog/v2"
)

// shutdownGrace is how long the components get to end by themselves.
const shutdownGrace = 2 * time.Second

// answer holds a line of stdout, in JSON.
type answer struct {
	// Address is where the API server listens; the first answer.
	Address string `json:"address,omitempty"`
	// Snapshot is the file that was written, the answer to "snapshot FILE" on stdin.
	Snapshot string `json:"snapshot,omitempty"`
	Error    string `json:"error,omitempty"`
}

// controlPlane runs a control plane until stdin closes, so that it never outlives its parent, or a
// signal comes.
func controlPlane(args []string) error {
	c, err := loadConfig(args)
	if err != nil {
		return err
	}

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	orders := make(chan string)
	go func() {
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			orders <- lines.Text()
		}
		stop() // the parent is gone, or wants us to end
		time.AfterFunc(2*shutdownGrace, func() { os.Exit(1) })
	}()

	// The client of etcd reports every connection that it closes as a failure.
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, os.Stderr))

	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("taking a port for the API server: %w", err)
	}
	parts, err := parseComponents(c, listener)
	if err != nil {
		return err
	}
	if err := say(answer{Address: listener.Addr().String()}); err != nil {
		return err
	}

	etcd, err := startEtcd(ctx, c.Restore)
	if err != nil {
		return err
	}
	// Not Close, which waits for clients: only the data must be written out.
	defer etcd.Server.Stop()
	go obey(ctx, etcd, orders)

	return run(ctx, parts)
}

func say(a answer) error { return json.NewEncoder(os.Stdout).Encode(a) }

// obey carries out the orders of the parent, one after the other.
func obey(ctx context.Context, etcd *embed.Etcd, orders <-chan string) {
	for {
		select {
		case <-ctx.Done():
			return
		case order := <-orders:
			a := answer{}
			if file, ok := strings.CutPrefix(order, "snapshot "); ok {
				a.Snapshot = file
				if err := snapshot(ctx, etcd, file); err != nil {
					a.Error = err.Error()
				}
			} else {
				a.Error = fmt.Sprintf("unknown order %q", order)
			}
			if err := say(a); err != nil {
				klog.ErrorS(err, "answering the parent")
			}
		}
	}
}

// run runs the components until ctx ends or one of them does.
func run(ctx context.Context, parts *components) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	ended := make(chan error, 3)
	go func() { ended <- parts.runAPIServer(ctx) }()
	go func() {
		// The controllers give up when the API server takes long, as it does on a busy machine.
		if err := parts.awaitAPIServer(ctx); err != nil {
			ended <- err

			return
		}
		go func() { ended <- parts.runControllerManager(ctx) }()
		go func() { ended <- parts.runScheduler(ctx) }()
	}()

	select {
	case err := <-ended:
		if ctx.Err() == nil {
			return errors.Join(errors.New("a component ended"), err)
		}
	case <-ctx.Done():
	}
	klog.Flush()

	return nil
}
