// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// engineGoneError reports that nobody answers any more at the engine's address.
type engineGoneError struct{ address string }

// Error returns what it means.
func (e *engineGoneError) Error() string {
	return fmt.Sprintf("the Pulumi engine at %s is gone: this run ends, and changes nothing more", e.address)
}

// exitWhenEngineStops ends the program when the engine has stopped. An engine that is killed leaves the program
// behind, in the middle of a step that nobody will record; the next run would meet it at work on the nodes.
func exitWhenEngineStops() {
	address := os.Getenv(pulumi.EnvEngine)
	if address == "" {
		return // run by hand, or by a test
	}
	go func() {
		err := watchEngine(context.Background(), address, time.Second)
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}()
}

// watchEngine returns when the engine has refused several connections in a row.
func watchEngine(ctx context.Context, address string, interval time.Duration) error {
	const refusals = 3

	dialer := net.Dialer{Timeout: 10 * time.Second}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for refused := 0; refused < refusals; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			refused++

			continue
		}
		refused = 0
		_ = conn.Close() // it was only to see that somebody is there
	}

	return &engineGoneError{address: address}
}
