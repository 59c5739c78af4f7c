// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmox_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/proxmox"
)

// TestUsersOfAVolume asks for the VMs with a file in a drive: those of the hosts that are named, and of every host that sees
// the file where the datastore is shared.
func TestUsersOfAVolume(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		shared  int
		volumes []string
		want    []int
	}{
		"a host's own datastore":     {0, []string{"iso:iso/talos.iso"}, []int{301}},
		"a shared datastore":         {1, []string{"iso:iso/talos.iso"}, []int{301, 401}},
		"a file that is not there":   {1, []string{"iso:iso/other.iso"}, nil},
		"a datastore without a file": {0, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := []map[string]any{}
			for _, v := range c.volumes {
				files = append(files, map[string]any{"volid": v})
			}
			answers := map[string]any{
				"/nodes/alpha/storage/iso/content": files,
				"/nodes/alpha/storage/iso/status":  map[string]any{"shared": c.shared},
				"/cluster/resources": []map[string]any{
					{"vmid": 301, "name": "cp-1", "node": "alpha"}, {"vmid": 302, "name": "db", "node": "alpha"},
					{"vmid": 401, "name": "cp-1", "node": "charlie"},
				},
				"/nodes/alpha/qemu/301/config":   map[string]any{"ide2": "iso:iso/talos.iso,media=cdrom"},
				"/nodes/alpha/qemu/302/config":   map[string]any{"ide2": "none,media=cdrom"},
				"/nodes/charlie/qemu/401/config": map[string]any{"ide2": "iso:iso/talos.iso,media=cdrom"},
			}
			api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_ = json.NewEncoder(w).Encode(map[string]any{"data": answers[strings.TrimPrefix(r.URL.Path, "/api2/json")]})
			}))
			t.Cleanup(api.Close)
			client, err := proxmox.New(proxmox.Access{Endpoint: api.URL, Token: "a@pve!b=c", Insecure: true})
			require.NoError(t, err)
			users, err := client.UsersOf(t.Context(), "iso:iso/talos.iso", "alpha", []string{"alpha"})
			require.NoError(t, err)
			var ids []int
			for _, u := range users {
				ids = append(ids, u.ID)
			}
			assert.Equal(t, c.want, ids)
		})
	}
}
