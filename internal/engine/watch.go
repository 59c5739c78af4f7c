// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package engine

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"
)

// goneError reports that nobody answers any more at the engine's address.
type goneError struct{ address string }

// Error returns what it means.
func (e *goneError) Error() string {
	return fmt.Sprintf("the Pulumi engine at %s is gone: this run ends, and changes nothing more", e.address)
}

// ExitWhenGone ends the program when the engine has stopped. An engine that is killed leaves the program
// behind, in the middle of a step that nobody will record; the next run would meet it at work on the nodes.
func ExitWhenGone() {
	address := os.Getenv(addressVariable)
	if address == "" {
		return // run by hand, or by a test
	}
	go func() {
		err := watch(context.Background(), address, time.Second)
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}()
}

// watch returns when the engine has refused several connections in a row.
func watch(ctx context.Context, address string, interval time.Duration) error {
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

	return &goneError{address: address}
}
