// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package hook

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// handOver bounds the wait for a value from the resource that has it. Hooks run on resources that depend on that one, so
// the value is on its way, however slow the machine: only what would never end is ended.
const handOver = 2 * time.Minute

// Future holds a value that becomes known during the run. Use [NewFuture] or [FutureOf].
type Future[T any] struct {
	what  string
	once  sync.Once
	known chan struct{}
	value T
}

// NewFuture returns a future that waits for [Future.Set]; what names the value in errors.
func NewFuture[T any](what string) *Future[T] {
	return &Future[T]{what: what, known: make(chan struct{})}
}

// FutureOf returns the value of an input, once it is known.
func FutureOf(what string, text pulumi.StringInput) *Future[string] {
	f := NewFuture[string](what)
	text.ToStringOutput().ApplyT(func(text string) string {
		f.Set(text)

		return ""
	})

	return f
}

// Set makes the value known; the first one counts.
func (f *Future[T]) Set(value T) {
	f.once.Do(func() {
		f.value = value
		close(f.known)
	})
}

// Get returns the value. A hook that calls it must run on a resource that depends on the value's own, or
// the two wait for each other.
func (f *Future[T]) Get(ctx context.Context) (T, error) {
	timer := time.NewTimer(handOver)
	defer timer.Stop()
	var none T
	select {
	case <-f.known:
		return f.value, nil
	case <-ctx.Done():
		return none, fmt.Errorf("waiting for %s: %w", f.what, ctx.Err())
	case <-timer.C:
		return none, fmt.Errorf("%s is not known: its resource is missing from the state", f.what)
	}
}
