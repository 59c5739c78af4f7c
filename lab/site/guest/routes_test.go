// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package guest

import (
	"context"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAWrongGatewayCutsOff gives two machines of a subnet their router, and one of them another gateway: nobody outside
// reaches it any more, it reaches nobody there, and its neighbours still reach it.
func TestAWrongGatewayCutsOff(t *testing.T) {
	t.Parallel()

	n := NewNet()
	join := func(owner, address string, gateways ...string) {
		prefix := netip.MustParsePrefix(address)
		var by []netip.Addr
		for _, g := range gateways {
			by = append(by, netip.MustParseAddr(g))
		}
		_, err := n.Up(prefix.Addr(), owner)
		require.NoError(t, err)
		n.Route(owner, []netip.Prefix{prefix}, by)
	}
	reaches := func(dial func(context.Context, string, string) (c any, err error), address string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := dial(ctx, "tcp", address)

		return err
	}
	outside := func(ctx context.Context, network, address string) (any, error) {
		return n.DialFromOutside(ctx, network, address)
	}
	inside := func(ctx context.Context, network, address string) (any, error) {
		return n.DialContext(ctx, network, address)
	}
	join("one", "10.0.0.1/24", "10.0.0.254")
	join("two", "10.0.0.2/24", "10.0.0.254")
	join("none", "10.0.0.3/24")
	for _, address := range []string{"10.0.0.1:50000", "10.0.0.2:50000", "10.0.0.3:50000"} {
		l, err := n.Listen(address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		require.NoError(t, reaches(outside, address))
	}

	for _, wrong := range []string{"10.0.0.99", "10.0.0.1", "10.9.0.254"} {
		n.Route("two", []netip.Prefix{netip.MustParsePrefix("10.0.0.2/24")}, []netip.Addr{netip.MustParseAddr(wrong)})
		require.ErrorIs(t, reaches(outside, "10.0.0.2:50000"), syscall.ETIMEDOUT, wrong)
		require.NoError(t, reaches(inside, "10.0.0.2:50000"), wrong)
		require.NoError(t, reaches(outside, "10.0.0.1:50000"), wrong)
		assert.True(t, n.Stray("two", "ghcr.io"))
		assert.False(t, n.Stray("one", "ghcr.io"))
		assert.False(t, n.Stray("two", "fd00::1"), "its other family has no gateway at all")
	}
	n.Route("two", []netip.Prefix{netip.MustParsePrefix("10.0.0.2/24")}, []netip.Addr{netip.MustParseAddr("10.0.0.254")})
	require.NoError(t, reaches(outside, "10.0.0.2:50000"))
}
