// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package bridge

import (
	"context"
	"time"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/wire"
)

// Bounded returns a context that ends with the call, with the connection, or after seconds (0: no
// limit).
func Bounded(ctx context.Context, conn *wire.Conn, seconds float64) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(conn.Context(), func() { cancel(context.Cause(conn.Context())) })
	end := func() { stop(); cancel(nil) }

	if seconds <= 0 {
		return ctx, end
	}

	ctx, release := context.WithTimeout(ctx, time.Duration(seconds*float64(time.Second)))

	return ctx, func() { release(); end() }
}
