// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmox_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/recorded"
	"github.com/talos-proxmox/talos-proxmox/lab/site/pve/schema"
)

// TestAnswersAreAsDescribed checks answers of the lab against what the API description says each call returns.
func TestAnswersAreAsDescribed(t *testing.T) {
	t.Parallel()
	for _, major := range recorded.ProxmoxMajors() {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			t.Parallel()
			d, err := schema.Load(major)
			require.NoError(t, err)
			p := newScenePlayer(t, major, recorded.ProxmoxScene{})
			made := p.ask(recorded.ProxmoxRequest{Method: http.MethodPost, Path: "/nodes/alpha/qemu", Params: map[string]string{
				"vmid": "100", "name": "web", "memory": "2048", "cores": "2", "onboot": "1", "tags": "a", "agent": "1",
				"scsi0": "local-lvm:1", "net0": "virtio,bridge=vmbr0",
			}})
			require.Equal(t, http.StatusOK, made.Status, made)
			for _, r := range []recorded.ProxmoxRequest{
				{Method: http.MethodPost, Path: "/pools", Params: map[string]string{"poolid": "k8s"}},
				{Method: http.MethodPost, Path: "/cluster/ha/resources", Params: map[string]string{"sid": "vm:100", "state": "ignored"}},
				{Method: http.MethodPost, Path: "/cluster/mapping/pci", Params: map[string]string{
					"id": "gpu", "map": "node=alpha,path=0000:01:00.0,id=8086:1234", "description": "graphics",
				}},
			} {
				require.Equal(t, http.StatusOK, p.ask(r).Status, r.Path)
			}
			for call, path := range map[string]string{
				"GET /version": "/version", "GET /cluster/nextid": "/cluster/nextid", "GET /cluster/resources": "/cluster/resources",
				"GET /cluster/status": "/cluster/status", "GET /cluster/options": "/cluster/options", "GET /cluster/tasks": "/cluster/tasks",
				"GET /nodes": "/nodes", "GET /nodes/{node}/status": "/nodes/alpha/status", "GET /nodes/{node}/version": "/nodes/alpha/version",
				"GET /nodes/{node}/time": "/nodes/alpha/time", "GET /nodes/{node}/network": "/nodes/alpha/network",
				"GET /nodes/{node}/dns": "/nodes/alpha/dns", "GET /nodes/{node}/tasks": "/nodes/alpha/tasks",
				"GET /nodes/{node}/qemu": "/nodes/alpha/qemu", "GET /nodes/{node}/qemu/{vmid}/config": "/nodes/alpha/qemu/100/config",
				"GET /nodes/{node}/qemu/{vmid}/pending":        "/nodes/alpha/qemu/100/pending",
				"GET /nodes/{node}/qemu/{vmid}/status/current": "/nodes/alpha/qemu/100/status/current",
				"GET /storage": "/storage", "GET /storage/{storage}": "/storage/local", "GET /nodes/{node}/storage": "/nodes/alpha/storage",
				"GET /nodes/{node}/storage/{storage}/status":           "/nodes/alpha/storage/local/status",
				"GET /nodes/{node}/storage/{storage}/content":          "/nodes/alpha/storage/local/content",
				"GET /nodes/{node}/storage/{storage}/content/{volume}": "/nodes/alpha/storage/local/content/iso/talos.iso",
				"GET /pools": "/pools", "GET /pools/{poolid}": "/pools/k8s", "GET /cluster/ha/resources": "/cluster/ha/resources",
				"GET /cluster/ha/resources/{sid}": "/cluster/ha/resources/vm:100", "GET /cluster/mapping/pci": "/cluster/mapping/pci",
				"GET /cluster/mapping/pci/{id}": "/cluster/mapping/pci/gpu", "GET /cluster/mapping/usb": "/cluster/mapping/usb",
			} {
				got := p.ask(recorded.ProxmoxRequest{Method: http.MethodGet, Path: path})
				if assert.Equal(t, http.StatusOK, got.Status, "%s: %s", call, got.Message) {
					assert.Empty(t, d.Returns(call, got.Data), call)
				}
			}
		})
	}
}
