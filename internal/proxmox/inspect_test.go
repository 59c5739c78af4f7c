// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmox_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/proxmox"
)

func TestInspect(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch strings.TrimPrefix(r.URL.Path, "/api2/json") {
		case "/cluster/resources":
			_, _ = w.Write([]byte(`{"data": [{"vmid": 300, "name": "other", "node": "pve1"}, {"vmid": 301, "name": "cp-1", "node": "pve2"}]}`))
		case "/nodes/pve2/qemu/301/config":
			_, _ = w.Write([]byte(`{"data": {"name": "cp-1", "boot": "order=scsi0;ide0", "scsihw": "virtio-scsi-single", "memory": 2048,
				"ide0": "local:iso/talos.iso,media=cdrom,size=1M", "ide2": "local-lvm:vm-301-cloudinit,media=cdrom", "ide1": "none,media=cdrom",
				"scsi0": "local-lvm:vm-301-disk-0,size=10G", "unused0": "local-lvm:vm-301-disk-2",
				"efidisk0": "my.dir:301/vm-301-disk-1.qcow2,efitype=4m,pre-enrolled-keys=1,size=528K", "tpmstate0": "local-lvm:vm-301-disk-3,version=v2.0",
				"net10": "virtio=aa:bb:cc:00:00:10,bridge=vmbr0", "net2": "virtio=aa:bb:cc:00:00:02,bridge=vmbr0"}}`))
		}
	}))
	t.Cleanup(server.Close)
	client, err := proxmox.New(proxmox.Access{Endpoint: server.URL, Token: "root@pam!t=1", Insecure: true})
	require.NoError(t, err)

	found, err := client.Inspect(t.Context(), 301)
	require.NoError(t, err)
	assert.Equal(t, &proxmox.Machine{
		Name: "cp-1", Host: "pve2", MACs: []string{"AA:BB:CC:00:00:02", "AA:BB:CC:00:00:10"}, Disks: []string{"scsi0"},
		CDs: map[string]string{"ide0": "local:iso/talos.iso", "ide1": "none"}, EFIDisk: "4m qcow2 with keys", TPM: "v2.0",
	}, found)

	found, err = client.Inspect(t.Context(), 302)
	require.NoError(t, err)
	assert.Nil(t, found)
}
