// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package doctor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/doctor"
	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/pulumi"
	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/stackfile"
	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/internal/proxmox"
	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

const token = "pulumi@pve!talos=00000000-0000-0000-0000-000000000001"

// world plays, with servers of the test, all that a stack's first `up` asks.
type world struct {
	in doctor.Input
	// answers of Proxmox VE by path; a number is a status.
	answers map[string]any
	// denied privileges.
	denied map[string]bool
	// outside answers as factory, mirror and git host, by the path's beginning.
	outside map[string]int
	pulumi  map[string]string
}

func (w *world) serve(t *testing.T) {
	t.Helper()
	api := httptest.NewTLSServer(http.HandlerFunc(func(res http.ResponseWriter, req *http.Request) {
		path := strings.TrimPrefix(req.URL.Path, "/api2/json")
		switch {
		case path == "/":
		case req.Header.Get("Authorization") != "PVEAPIToken="+token:
			res.WriteHeader(http.StatusUnauthorized)
		case path == "/access/permissions":
			at, have := req.URL.Query().Get("path"), map[string]int{}
			for _, p := range doctor.NeededPrivileges(w.in.Config, 8) {
				if p.Path == at && !w.denied[p.Name] {
					have[p.Name] = 1
				}
			}
			answer(res, map[string]any{at: have})
		default:
			answer(res, w.answers[path])
		}
	}))
	t.Cleanup(api.Close)
	if w.in.Access.Endpoint == "" {
		w.in.Access.Endpoint = api.URL
	}
}

func answer(res http.ResponseWriter, v any) {
	switch v := v.(type) {
	case nil:
		res.WriteHeader(http.StatusNotImplemented)
	case int:
		res.WriteHeader(v)
	default:
		_ = json.NewEncoder(res).Encode(map[string]any{"data": v})
	}
}

// newWorld returns a world in which the stack of one node lacks nothing.
func newWorld(t *testing.T) *world {
	t.Helper()
	project, err := pulumi.FindProject(".")
	require.NoError(t, err)
	s, _, err := stackfile.Load(t.Context(), project, pulumi.CLI{Stack: "dev"})
	require.NoError(t, err)
	cfg := spec.Clone(s.Config)
	cfg.Nodes = cfg.Nodes[:1]
	cfg.Nodes[0].Networks["lan"] = spec.Network{Bridge: spec.Ptr("vmbr200"), Address: spec.Ptr("127.99.0.1/24")}
	cfg.Cluster.VIP, cfg.GitOps, cfg.CNI = nil, spec.GitOps{}, spec.CNI{}

	w := &world{denied: map[string]bool{}, outside: map[string]int{}, pulumi: map[string]string{
		"version":   "v3.260.0\n",
		"plugin ls": `[{"name":"proxmoxve","version":"6.18.1"},{"name":"talos","version":"0.7.1"},{"name":"kubernetes","version":"` + versions.KubernetesPlugin + `"}]`,
	}}
	outside := httptest.NewServer(http.HandlerFunc(func(res http.ResponseWriter, req *http.Request) {
		for begin, code := range w.outside {
			if strings.HasPrefix(req.URL.Path, begin) {
				res.WriteHeader(code)
			}
		}
	}))
	t.Cleanup(outside.Close)
	img := cfg.Images[spec.DefaultImage]
	img.FactoryURL = &outside.URL
	cfg.Images[spec.DefaultImage] = img
	cfg.Talos.Registries = map[string]spec.Registry{"ghcr.io": {Endpoints: []string{outside.URL + "/v2/gh"}}}
	cfg.GitOps.Git.URL = spec.Ptr(outside.URL + "/lab/demo.git")

	now := time.Unix(1_800_000_000, 0)
	w.answers = map[string]any{
		"/version":                    map[string]any{"version": "8.3.5"},
		"/nodes":                      []any{map[string]any{"node": "ryzen-proxmox", "status": "online"}},
		"/nodes/ryzen-proxmox/time":   map[string]any{"time": now.Unix()},
		"/nodes/ryzen-proxmox/status": map[string]any{"cpuinfo": map[string]any{"cpus": 8}, "memory": map[string]any{"total": 64 << 30, "free": 32 << 30}},
		"/nodes/ryzen-proxmox/storage": []any{
			map[string]any{"storage": "local", "active": 1, "content": "iso,vztmpl", "avail": 100 << 30},
			map[string]any{"storage": "local-lvm", "active": 1, "content": "images,rootdir", "avail": 100 << 30},
		},
		"/nodes/ryzen-proxmox/network":            []any{map[string]any{"iface": "vmbr200", "type": "bridge"}},
		"/nodes/ryzen-proxmox/query-url-metadata": map[string]any{"filename": "x"},
		"/cluster/resources":                      []any{},
		"/cluster/mapping/pci":                    []any{map[string]any{"id": "igpu"}},
		"/cluster/mapping/usb":                    []any{},
	}
	w.in = doctor.Input{
		Stack: "dev", Config: cfg.WithDefaults(), Access: proxmox.Access{Token: token, Insecure: true}, Live: true, Timeout: 3 * time.Second,
		Now: func() time.Time { return now },
		Charts: manifests.Cache{Dir: t.TempDir(), Fetch: func(context.Context, spec.Chart) ([]byte, error) {
			return nil, errors.New("no route to host")
		}},
		Pulumi: func(_ context.Context, command string, _ ...string) ([]byte, error) {
			return []byte(w.pulumi[command]), nil
		},
	}

	return w
}

func TestNothingIsFoundWhereNothingIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve(t)
	report := doctor.Run(t.Context(), w.in)

	assert.False(t, report.Failed())
	require.Len(t, report.Findings, 1, report.Findings)
	assert.Equal(t, "tls", report.Findings[0].Check, "certificates are not verified here")
	for _, c := range report.Checks {
		assert.NotEqual(t, "skipped", c.State, "%s: %s", c.Check, c.Why)
	}
}

// TestEveryCheckFindsItsFault has each check meet what it is there for.
func TestEveryCheckFindsItsFault(t *testing.T) {
	t.Parallel()
	node := func(w *world) *spec.NamedNode { return &w.in.Config.Nodes[0] }
	host := "/nodes/ryzen-proxmox/"
	for name, c := range map[string]struct {
		edit                  func(t *testing.T, w *world)
		check, want, remedies string
	}{
		"an old engine": {func(_ *testing.T, w *world) { w.pulumi["version"] = "v3.100.0" },
			"engine", "the Pulumi CLI is v3.100.0; the program needs v3.259.0 or newer", "https://www.pulumi.com/docs/install/"},
		"a plugin that is missing": {func(_ *testing.T, w *world) { w.pulumi["plugin ls"] = "[]" },
			"plugins", "kubernetes v" + versions.KubernetesPlugin + ", proxmoxve v6.18.1, talos v0.7.1", "pulumi plugin install resource talos v0.7.1"},
		"a chart that cannot be had": {func(_ *testing.T, w *world) { w.in.Config.GitOps.Provider = spec.Ptr("flux") },
			"charts", "no route to host", "tpx charts dev"},
		"nobody there": {func(_ *testing.T, w *world) { w.in.Access.Endpoint = "https://127.0.0.1:1" },
			"api", "nothing answers at https://127.0.0.1:1", "port 8006"},
		"a certificate that nobody trusts": {func(_ *testing.T, w *world) { w.in.Access.Insecure = false },
			"tls", "signed by an authority that this machine does not trust", "/etc/pve/pve-root-ca.pem"},
		"a token that is not taken": {func(_ *testing.T, w *world) { w.in.Access.Token = "pulumi@pve!other=1" },
			"token", "does not take the credentials", "pveum user token add pulumi@pve"},
		"another release": {func(_ *testing.T, w *world) { w.answers["/version"] = map[string]any{"version": "9.1.1"} },
			"version", "the hosts run Proxmox VE 9, and the stack says 8", "proxmox.version 9"},
		"a clock that is off": {func(_ *testing.T, w *world) { w.answers[host+"time"] = map[string]any{"time": 1_800_000_600} },
			"time", "its clock is 10m0s off this machine's", "timedatectl"},
		"a missing privilege": {func(_ *testing.T, w *world) { w.denied["VM.Migrate"], w.denied["VM.Monitor"] = true, true },
			"privileges", "pulumi@pve!talos may not VM.Migrate, VM.Monitor on /vms", "pveum acl modify /vms --users pulumi@pve"},
		"a host that is not there": {func(_ *testing.T, w *world) {
			w.answers["/nodes"] = []any{map[string]any{"node": "pve7", "status": "online"}}
		},
			"hosts", `there is no host "ryzen-proxmox"`, "write one of: pve7"},
		"a host that is off": {func(_ *testing.T, w *world) {
			w.answers["/nodes"] = []any{map[string]any{"node": "ryzen-proxmox", "status": "offline"}}
		}, "hosts", "the host is offline", "start it"},
		"no datastore": {func(_ *testing.T, w *world) { node(w).OSDisk.Datastore = spec.Ptr("ceph") },
			"storage", `host ryzen-proxmox has no datastore "ceph"`, "write one of: local, local-lvm"},
		"a datastore for other things": {func(_ *testing.T, w *world) { node(w).OSDisk.Datastore = spec.Ptr("local") },
			"storage", `datastore "local" does not take the content "images"`, "pvesm set local --content iso,vztmpl,images"},
		"no room": {func(_ *testing.T, w *world) { node(w).OSDisk.Size = spec.Ptr(spec.GiB(500)) },
			"storage", "new disks on local-lvm are 500 GiB, and 100 GiB are free there", "make room"},
		"no bridge": {func(_ *testing.T, w *world) {
			w.answers[host+"network"] = []any{map[string]any{"iface": "vmbr0", "type": "bridge"}}
		},
			"bridges", `host ryzen-proxmox has no bridge "vmbr200"`, "write one of: vmbr0"},
		"a bridge without VLANs": {func(_ *testing.T, w *world) {
			lan := node(w).Networks["lan"]
			lan.VLAN = spec.Ptr(7)
			node(w).Networks["lan"] = lan
		}, "bridges", "bridge vmbr200 of host ryzen-proxmox is not VLAN-aware", "--bridge_vlan_aware 1"},
		"an id that is taken": {func(_ *testing.T, w *world) {
			w.answers["/cluster/resources"] = []any{map[string]any{"vmid": *node(w).VMID, "name": "db", "node": "pve7"}}
		}, "vm-ids", `800 is the id of "db" on host pve7`, "801 is free"},
		"a disk that was added by hand": {func(_ *testing.T, w *world) {
			n := node(w)
			w.answers["/cluster/resources"] = []any{map[string]any{"vmid": *n.VMID, "name": n.Name, "node": "ryzen-proxmox"}}
			w.answers[host+"qemu/800/config"] = map[string]any{
				n.OSDisk.Interface(): "local-lvm:vm-800-disk-0,size=10G", "scsi9": "local-lvm:vm-800-disk-1,size=3G",
				"ide2": "local:iso/talos.iso,media=cdrom", "unused0": "local-lvm:vm-800-disk-2",
			}
		}, "disks", "VM 800 on host ryzen-proxmox has the disk scsi9, which the stack file does not have", "qm set 800 --delete scsi9"},
		"too little memory": {func(_ *testing.T, w *world) { node(w).Memory = spec.Ptr(spec.MiB(128 << 10)) },
			"capacity", "its nodes get 131072 MiB of memory, and the host has 65536 MiB", "less memory"},
		"too few cores": {func(_ *testing.T, w *world) { node(w).CPU = spec.Ptr(16) },
			"capacity", "16 cores, and host ryzen-proxmox has 8", "fewer cores"},
		"an address that is taken": {func(t *testing.T, w *world) {
			lan := node(w).Networks["lan"]
			lan.Address = spec.Ptr("127.99.0.2/24")
			node(w).Networks["lan"] = lan
			occupy(t, "127.99.0.2:50000")
		}, "addresses", "something answers at 127.99.0.2 already, on port 50000", "free"},
		"a mapping that is not there": {func(_ *testing.T, w *world) { node(w).GPU = &spec.GPU{Mapping: spec.Ptr("gpu")} },
			"mappings", `there is no mapping "gpu"`, "there are: igpu"},
		"an unknown version of Talos": {func(_ *testing.T, w *world) { w.outside["/image/"] = http.StatusNotFound },
			"factory", "the Image Factory has no image of this version", "/versions"},
		"a host without a way out": {func(_ *testing.T, w *world) { w.answers[host+"query-url-metadata"] = 500 },
			"factory", "the host does not reach", "image.isoMirror"},
		"a mirror that is none": {func(_ *testing.T, w *world) { w.outside["/v2/"] = http.StatusNotFound },
			"mirrors", "answers 404 to /v2/: that is no registry", "registry's address"},
		"a repository that is closed": {func(_ *testing.T, w *world) { w.outside["/lab/demo.git/info/refs"] = http.StatusUnauthorized },
			"git", "the git host answers 401", "give a token that may"},
		"a repository that is not there": {func(_ *testing.T, w *world) { w.outside["/lab/demo.git/info/refs"] = http.StatusNotFound },
			"git", "the git host knows no such repository", "gitops.git.auth"},
		"a git host that is silent": {func(_ *testing.T, w *world) { w.in.Config.GitOps.Git.URL = spec.Ptr("ssh://git@127.0.0.1:1/a/b.git") },
			"git", "127.0.0.1:1 does not answer", "reached"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c.edit(t, w)
			w.serve(t)
			report := doctor.Run(t.Context(), w.in)
			var told bytes.Buffer
			report.Print(&told)
			for _, f := range report.Findings {
				if f.Check == c.check && strings.Contains(f.Problem, c.want) {
					assert.Contains(t, f.Remedy, c.remedies)
					assert.NotContains(t, told.String(), strings.Split(token, "=")[1], "the token stays secret")

					return
				}
			}
			assert.Fail(t, "not found", told.String())
		})
	}
}

// occupy has something answer at an address until the test ends.
func occupy(t *testing.T, address string) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() { _ = http.Serve(listener, http.NotFoundHandler()) }()
}

func TestReportsForMachines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.in.Access.Token = "pulumi@pve!other=1"
	w.serve(t)
	report := doctor.Run(t.Context(), w.in)
	var text bytes.Buffer
	require.NoError(t, report.PrintJSON(&text))
	var read doctor.Report
	require.NoError(t, json.Unmarshal(text.Bytes(), &read))
	assert.Equal(t, report, read)
	assert.True(t, read.Failed())
	assert.Contains(t, fmt.Sprint(read.Checks), "{hosts skipped there is no trusted connection to the API}", "one cause is told once")
}
