// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmox_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/fault"
)

func TestTheAPIOfAHostThatIsDown(t *testing.T) {
	t.Parallel()
	c := serve(t)
	_, err := c.faults.Add(fault.HostDown, map[string]string{"host": pve})
	require.NoError(t, err)

	status, _ := c.do(http.MethodGet, "/nodes/"+pve+"/qemu", nil)
	assert.Equal(t, "595 No route to host", status)
	c.ok(http.MethodGet, "/nodes/alpha/qemu", nil)
}

func TestAnAPIThatFailsIsSilentOrSlow(t *testing.T) {
	t.Parallel()
	c := serve(t)

	_, err := c.faults.Add(fault.APIError, map[string]string{
		"api": fault.Proxmox, "call": "/nodes/*/qemu", "method": "GET", "status": "503", "message": "out of order", "nth": "2", "count": "1",
	})
	require.NoError(t, err)
	c.ok(http.MethodGet, "/nodes/alpha/qemu", nil)
	status, _ := c.do(http.MethodGet, "/nodes/alpha/qemu", nil)
	assert.Equal(t, "503 out of order", status)
	c.ok(http.MethodGet, "/nodes/alpha/qemu", nil)

	silent, err := c.faults.Add(fault.APITimeout, map[string]string{"api": fault.Proxmox, "call": "/version"})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.server.URL+"/api2/json/version", nil)
	require.NoError(t, err)
	_, err = http.DefaultClient.Do(req) // there is none
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, c.faults.Remove(silent.ID))

	_, err = c.faults.Add(fault.APISlow, map[string]string{"api": fault.Proxmox, "by": "60ms"})
	require.NoError(t, err)
	began := time.Now()
	c.ok(http.MethodGet, "/version", nil)
	assert.GreaterOrEqual(t, time.Since(began), 60*time.Millisecond, "real time, whatever the lab's speed")
}
