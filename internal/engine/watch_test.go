// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package engine

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheProgramEndsWithItsEngine(t *testing.T) {
	t.Parallel()

	var listen net.ListenConfig
	engine, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := engine.Addr().String()

	answers := make(chan struct{}, 100)
	go func() {
		for {
			conn, err := engine.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
			answers <- struct{}{}
		}
	}()
	ended := make(chan error, 1)
	go func() { ended <- watch(t.Context(), address, time.Millisecond) }()
	for range 5 {
		<-answers
	}
	assert.Empty(t, ended, "as long as the engine is there the program runs")

	require.NoError(t, engine.Close())
	var gone *goneError
	require.ErrorAs(t, <-ended, &gone)
	assert.EqualError(t, gone, "the Pulumi engine at "+address+" is gone: this run ends, and changes nothing more")
}

func TestWatchingTheEngineEndsWithItsContext(t *testing.T) {
	t.Parallel()

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, watch(ctx, "127.0.0.1:1", time.Hour), context.Canceled)
}
