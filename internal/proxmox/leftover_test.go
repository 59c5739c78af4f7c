// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmox_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/proxmox"
)

// hypervisor plays a Proxmox VE with one VM, or none.
type hypervisor struct {
	mu     sync.Mutex
	there  bool
	status string
	net    string
	bare   bool // Proxmox VE was interrupted in making it
	calls  []string
}

func (h *hypervisor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/api2/json")
	if r.Method != http.MethodGet {
		h.calls = append(h.calls, r.Method+" "+path)
	}
	data, status := h.answer(path, r)
	if status != http.StatusOK {
		w.WriteHeader(status)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
}

// answer returns the data and the status of an answer.
func (h *hypervisor) answer(path string, r *http.Request) (any, int) {
	switch {
	case path == "/access/ticket":
		return map[string]string{"ticket": "t", "CSRFPreventionToken": "c"}, http.StatusOK
	case r.Header.Get("Authorization") != "PVEAPIToken=root@pam!t=1" && r.Header.Get("CSRFPreventionToken") != "c":
		return nil, http.StatusUnauthorized
	case path == "/cluster/resources":
		return h.resources(), http.StatusOK
	case !h.there:
		return nil, http.StatusInternalServerError
	default:
		return h.machine(path, r.Method), http.StatusOK
	}
}

// resources returns what the cluster lists.
func (h *hypervisor) resources() []map[string]any {
	switch {
	case !h.there:
		return []map[string]any{}
	case h.bare:
		return []map[string]any{{"vmid": 301, "name": "VM 301", "node": "pve1", "status": h.status}}
	default:
		return []map[string]any{{"vmid": 301, "name": "cp-1", "node": "pve1", "status": h.status}}
	}
}

// machine answers for the VM.
func (h *hypervisor) machine(path, method string) any {
	switch {
	case strings.HasSuffix(path, "/config") && h.bare:
		return map[string]any{"digest": "da39a3ee", "vmid": 301}
	case strings.HasSuffix(path, "/config"):
		return map[string]any{"net0": h.net, "vmid": 301}
	case strings.HasSuffix(path, "/status/current"):
		return map[string]string{"status": h.status}
	case strings.HasSuffix(path, "/status/start"):
		h.status = "running"
	case strings.HasSuffix(path, "/status/stop"):
		h.status = "stopped"
	case method == http.MethodDelete:
		h.there = false
	}

	return nil
}

// gonePVE answers like Proxmox VE: the reason stands in the status line, which Go's server cannot write.
type gonePVE struct{ http.RoundTripper }

func (g gonePVE) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := g.RoundTripper.RoundTrip(r)
	if err == nil && res.StatusCode == http.StatusInternalServerError {
		res.Status = "500 Configuration file 'nodes/pve1/qemu-server/301.conf' does not exist"
	}

	return res, err
}

func TestLeftover(t *testing.T) {
	t.Parallel()

	const ours = "virtio=02:00:00:00:00:01,bridge=vmbr0"
	for name, c := range map[string]struct {
		hypervisor *hypervisor
		blank      error
		password   bool
		calls      []string
		report     []string
		problem    string
	}{
		"nothing is there": {hypervisor: &hypervisor{}},
		"somebody else's": {
			hypervisor: &hypervisor{there: true, status: "running", net: "virtio=02:00:00:00:00:99"},
		},
		"blank": {
			hypervisor: &hypervisor{there: true, status: "running", net: ours},
			calls:      []string{"POST /nodes/pve1/qemu/301/status/stop", "DELETE /nodes/pve1/qemu/301"},
			report: []string{
				"VM 301 of cp-1 is on host pve1 already: an earlier run was interrupted while it made it",
				"VM 301 was blank; it is created again",
			},
		},
		"never started, with a password": {
			hypervisor: &hypervisor{there: true, status: "stopped", net: strings.ToLower(ours)}, password: true,
			calls: []string{
				"POST /access/ticket", "POST /nodes/pve1/qemu/301/status/start",
				"POST /nodes/pve1/qemu/301/status/stop", "DELETE /nodes/pve1/qemu/301",
			},
			report: []string{
				"VM 301 of cp-1 is on host pve1 already: an earlier run was interrupted while it made it",
				"VM 301 was blank; it is created again",
			},
		},
		"made by half": {
			hypervisor: &hypervisor{there: true, status: "stopped", bare: true}, blank: errors.New("nobody asks"),
			calls: []string{"DELETE /nodes/pve1/qemu/301"},
			report: []string{
				"VM 301 of cp-1 is on host pve1 already: an earlier run was interrupted while it made it",
				"VM 301 was blank; it is created again",
			},
		},
		"not blank": {
			hypervisor: &hypervisor{there: true, status: "running", net: ours}, blank: errors.New("it is configured"),
			report: []string{"VM 301 of cp-1 is on host pve1 already: an earlier run was interrupted while it made it"},
			problem: "VM 301 of cp-1 is on host pve1 already and is not part of this stack; it is left alone, since it is " +
				"not known to be empty: it is configured\n  it may be the living node cp-1 itself, which dropped out of the state, as after a " +
				"refresh during a migration or with a token that does not see it: look at its console or talosctl version, and bring it " +
				"back with `tpx adopt`\n  remove it by hand only when nothing on it is needed, or choose another vmId",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			server := httptest.NewTLSServer(c.hypervisor)
			defer server.Close()
			access := proxmox.Access{Endpoint: server.URL + "/", Token: "root@pam!t=1", Insecure: true}
			if c.password {
				access.Token, access.Username, access.Password = "", "root@pam", "secret"
			}
			require.True(t, access.Complete())
			client, err := proxmox.New(access)
			require.NoError(t, err)
			client.Wrap(func(next http.RoundTripper) http.RoundTripper { return gonePVE{next} })
			var report []string

			err = proxmox.Leftover{
				Client: client, Timeout: 300 * time.Millisecond, Interval: time.Millisecond,
				Blank:  func(context.Context) error { return c.blank },
				Report: func(line string) { report = append(report, line) },
			}.Clear(t.Context(), proxmox.Wanted{ID: 301, Name: "cp-1", MACs: []string{"02:00:00:00:00:01"}})

			if c.problem == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, c.problem)
				assert.True(t, c.hypervisor.there)
			}
			assert.Equal(t, c.report, report)
			assert.Equal(t, c.calls, c.hypervisor.calls)
		})
	}
}
