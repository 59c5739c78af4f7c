// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package wire

import (
	"context"
	"maps"
	"path"
	"sync"

	"google.golang.org/grpc"
)

// Calls counts what engines call, by method ("Create"). Its zero value has counted nothing.
type Calls struct {
	mu     sync.Mutex
	counts map[string]int
}

// Counts returns how often each method was called.
func (c *Calls) Counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()

	return maps.Clone(c.counts)
}

// count counts a call and hands it on.
func (c *Calls) count(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	c.mu.Lock()
	if c.counts == nil {
		c.counts = map[string]int{}
	}
	c.counts[path.Base(info.FullMethod)]++
	c.mu.Unlock()

	return handle(ctx, req)
}
