// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// installs asks a node's LifecycleService for another Talos: what it prints, and the code it ends with.
func installs(b *bench, c *client.Client, image string) (said string, code int32, err error) {
	stream, err := c.LifecycleClient.Upgrade(b.ctx, &machineapi.LifecycleServiceUpgradeRequest{
		Source: &machineapi.InstallArtifactsSource{ImageName: image},
	})
	require.NoError(b.t, err)
	for {
		answer, err := stream.Recv()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}

			return said, code, err
		}
		said += answer.GetProgress().GetMessage()
		code = answer.GetProgress().GetExitCode()
	}
}

// pulls has a node's ImageService pull an image.
func pulls(b *bench, c *client.Client, image string) error {
	stream, err := c.ImageClient.Pull(b.ctx, &machineapi.ImageServicePullRequest{
		Containerd: &common.ContainerdInstance{
			Driver: common.ContainerDriver_CRI, Namespace: common.ContainerdNamespace_NS_SYSTEM,
		},
		ImageRef: image,
	})
	require.NoError(b.t, err)
	for err == nil {
		_, err = stream.Recv()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}

	return err // the test looks at its code
}

func TestLifecycleService(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.cluster()
	vms := c.up(1)
	admin := c.client(vms[0])
	version := func(want string) {
		b.eventually("version "+want, func() error {
			n, err := b.node(vms[0])
			if err == nil && (n.Version != want || !n.Serving) {
				err = errors.New("version is " + n.Version)
			}

			return err
		})
	}

	_, _, err := installs(b, admin, installer+schematicA+":v1.13.0")
	assert.Equal(t, codes.Unimplemented, client.StatusCode(err), "1.12 has no such service")
	_, err = admin.Upgrade(b.ctx, installer+schematicA+":v1.13.0", false, false) // what 1.12 has
	require.NoError(t, err)
	version("v1.13.0")

	admin = c.client(vms[0])
	_, _, err = installs(b, admin, installer+schematicA+":v1.13.1")
	assert.Equal(t, codes.Internal, client.StatusCode(err))
	assert.ErrorContains(t, err, "not found in containerd store", "it pulls nothing by itself")
	require.Equal(t, codes.NotFound, client.StatusCode(pulls(b, admin, installer+"deadbeef:v1.13.1")))

	require.NoError(t, pulls(b, admin, installer+schematicA+":v1.10.0"))
	said, code, err := installs(b, admin, installer+schematicA+":v1.10.0")
	require.NoError(t, err, "an installer that fails is no error of the service")
	assert.Equal(t, int32(1), code)
	assert.Contains(t, said, "Error: pre-flight checks failed: host version 1.13.0 is too new to downgrade to Talos 1.10.0")

	require.NoError(t, pulls(b, admin, installer+schematicA+":v1.13.1"))
	said, code, err = installs(b, admin, installer+schematicA+":v1.13.1")
	require.NoError(t, err)
	assert.Zero(t, code, said)
	assert.True(t, strings.HasSuffix(said, "complete\n"), said)
	n, err := b.node(vms[0])
	require.NoError(t, err)
	assert.Equal(t, "v1.13.0", n.Version, "until it reboots")
	assert.True(t, n.Serving)

	require.NoError(t, admin.Reboot(b.ctx))
	version("v1.13.1")
}
