// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package wire_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/wire"
)

type silent struct{ plugin.UnimplementedProvider }

// SignalCancellation implements [plugin.Provider].
func (silent) SignalCancellation(context.Context) error { return nil }

// TestCallsAreCounted counts what two engines call, whether the provider answers or not.
func TestCallsAreCounted(t *testing.T) {
	t.Parallel()

	var calls wire.Calls
	assert.Empty(t, calls.Counts())
	port, _, err := wire.Serve(t.Context(), func(*wire.Conn) plugin.Provider { return &silent{} }, &calls)
	require.NoError(t, err)
	for range 2 {
		conn, err := grpc.NewClient(fmt.Sprintf("passthrough:///127.0.0.1:%d", port),
			grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		_, err = pulumirpc.NewResourceProviderClient(conn).Check(t.Context(), &pulumirpc.CheckRequest{})
		require.Error(t, err, "which is not implemented")
	}
	assert.Equal(t, map[string]int{"Check": 2}, calls.Counts())
}
