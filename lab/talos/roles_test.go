// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos_test

import (
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// as returns a client of one node with the given role.
func (c *cluster) as(v *vm, r role.Role) *client.Client {
	b := c.bench
	b.t.Helper()
	cert, err := secrets.NewAdminCertificateAndKey(
		c.bundle.Clock.Now(), c.bundle.Certs.OS, role.MakeSet(r), time.Hour)
	require.NoError(b.t, err)

	return b.clientWith(clientconfig.NewConfig("demo", []string{v.addr()}, c.bundle.Certs.OS.Crt, cert), v)
}

func TestRoles(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	vms := c.up(2)
	reader := c.as(vms[0], role.Reader)

	_, err := reader.Version(b.ctx)
	require.NoError(t, err)
	_, err = safe.StateGetByID[*runtime.MachineStatus](b.ctx, reader.COSI, runtime.MachineStatusID)
	require.NoError(t, err)

	_, err = safe.StateGetByID[*config.MachineConfig](b.ctx, reader.COSI, config.ActiveID)
	assert.Equal(t, codes.PermissionDenied, client.StatusCode(err), "the configuration holds secrets")
	_, err = safe.StateGetByID[*config.MachineConfig](b.ctx, c.client(vms[0]).COSI, config.ActiveID)
	assert.NoError(t, err)

	for name, call := range map[string]func() error{
		"reboot":    func() error { return reader.Reboot(b.ctx) },
		"bootstrap": func() error { return reader.Bootstrap(b.ctx, &machineapi.BootstrapRequest{}) },
		"through another node": func() error {
			return reader.Reboot(client.WithNode(b.ctx, vms[1].addr()))
		},
	} {
		assert.Equal(t, codes.PermissionDenied, client.StatusCode(call()), name)
	}
	assert.Empty(t, b.trace.events("talos.reboot"))
}
