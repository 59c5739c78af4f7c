// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmox_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/fault"
	"github.com/talos-proxmox/talos-proxmox/lab/proxmox"
	"github.com/talos-proxmox/talos-proxmox/lab/site"
	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

const (
	token    = "root@pam!lab=00000000-0000-0000-0000-000000000001"
	readOnly = "viewer@pve!lab=00000000-0000-0000-0000-000000000002"
	password = "secret"
	pve      = "ryzen-proxmox"
)

// client calls the API as clients of Proxmox VE do.
type client struct {
	*testing.T
	server *httptest.Server
	header http.Header
	faults *fault.Set
}

func serve(t *testing.T) *client {
	t.Helper()

	return serveDefinition(t, nil)
}

func serveDefinition(t *testing.T, d *site.Definition) *client {
	t.Helper()

	faults := fault.New(guest.NewTrace(nil), nil)
	s, err := site.Open(site.Options{Dir: t.TempDir(), Clock: guest.Clock{Speed: 1000}, HTTP: http.DefaultClient, Faults: faults, Definition: d})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	server := httptest.NewServer(proxmox.New(s, &proxmox.Auth{
		Tokens:   []proxmox.Token{{Value: token}, {Value: readOnly, Grants: proxmox.Grants{"/": {"VM.Audit"}}}},
		Password: password,
	}))
	t.Cleanup(server.Close)

	return &client{T: t, server: server, header: http.Header{"Authorization": {"PVEAPIToken=" + token}}, faults: faults}
}

func (c *client) as(header http.Header) *client {
	return &client{T: c.T, server: c.server, header: header}
}

// do makes a call and returns its status line and data.
func (c *client) do(method, path string, params url.Values) (string, any) {
	c.Helper()

	req, err := http.NewRequestWithContext(c.Context(), method, c.server.URL+"/api2/json"+path, strings.NewReader(params.Encode()))
	require.NoError(c, err)
	req.Header = c.header.Clone()
	if len(params) > 0 {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(c, err)
	defer func() { _ = res.Body.Close() }()

	var body struct{ Data any }
	require.NoError(c, json.NewDecoder(res.Body).Decode(&body))

	return res.Status, body.Data
}

// ok makes a call that must succeed and waits for the task that it starts.
func (c *client) ok(method, path string, params url.Values) any {
	c.Helper()

	status, data := c.do(method, path, params)
	require.Equal(c, "200 OK", status)
	if upid, isTask := data.(string); isTask && strings.HasPrefix(upid, "UPID:") {
		assert.Regexp(c, `^UPID:[\w-]+:[0-9A-F]{8}:[0-9A-F]{8}:[0-9A-F]{8}:\w+:[^:]*:root@pam!lab:$`, upid)
		require.Equal(c, "OK", c.wait(upid))
	}

	return data
}

func (c *client) wait(upid string) string {
	c.Helper()

	var exit string
	require.Eventually(c, func() bool {
		task := c.ok(http.MethodGet, "/nodes/"+pve+"/tasks/"+upid+"/status", nil).(map[string]any)
		exit, _ = task["exitstatus"].(string)

		return task["status"] == "stopped"
	}, 10*time.Second, 5*time.Millisecond)

	return exit
}

func vm() url.Values {
	return url.Values{
		"vmid": {"800"}, "name": {"ctrl-00"}, "memory": {"2048"}, "cores": {"2"}, "agent": {"enabled=1,type=virtio"},
		"scsi0": {"file=local-lvm:10,format=raw"}, "net0": {"model=virtio,bridge=vmbr200"}, "onboot": {"1"}, "tags": {"k8s;cp"},
	}
}

const vmPath = "/nodes/" + pve + "/qemu/800"

func TestLifeOfAVM(t *testing.T) {
	t.Parallel()
	c := serve(t)

	c.ok(http.MethodPost, "/nodes/"+pve+"/qemu", vm())
	config := c.ok(http.MethodGet, vmPath+"/config", nil).(map[string]any)
	assert.Equal(t, "local-lvm:vm-800-disk-0,size=10G", config["scsi0"])
	assert.Equal(t, "2048", config["memory"], "memory is text")
	assert.InDelta(t, 2, config["cores"], 0, "cores is a number")

	c.ok(http.MethodPost, vmPath+"/status/start", nil)
	assert.Equal(t, "running", c.ok(http.MethodGet, vmPath+"/status/current", nil).(map[string]any)["status"])
	c.ok(http.MethodPut, vmPath+"/config", url.Values{"memory": {"4096"}, "delete": {"tags"}})
	config = c.ok(http.MethodGet, vmPath+"/config", nil).(map[string]any)
	assert.Equal(t, "4096", config["memory"], "pending changes are in it")
	assert.NotContains(t, config, "tags")
	assert.Equal(t, "2048", c.ok(http.MethodGet, vmPath+"/config?current=1", nil).(map[string]any)["memory"])

	c.ok(http.MethodPut, vmPath+"/resize", url.Values{"disk": {"scsi0"}, "size": {"21474836480"}})
	volume := c.ok(http.MethodGet, "/nodes/"+pve+"/storage/local-lvm/content/local-lvm:vm-800-disk-0", nil).(map[string]any)
	assert.InDelta(t, 21474836480, volume["size"], 0)
	assert.Equal(t, "raw", volume["format"])

	c.ok(http.MethodPost, vmPath+"/status/stop", nil)
	c.ok(http.MethodDelete, vmPath+"/?destroy-unreferenced-disks=1&purge=1", nil)
	assert.Empty(t, c.ok(http.MethodGet, "/cluster/resources?type=vm", nil))
	status, _ := c.do(http.MethodGet, vmPath+"/status/current", nil)
	assert.Equal(t, "500 Configuration file 'nodes/ryzen-proxmox/qemu-server/800.conf' does not exist", status)
}

func TestWhatGoesWrongStandsInTheReasonPhrase(t *testing.T) {
	t.Parallel()
	c := serve(t)
	c.ok(http.MethodPost, "/nodes/"+pve+"/qemu", vm())

	for name, call := range map[string]struct {
		method, path string
		params       url.Values
		want         string
	}{
		"id taken":       {http.MethodPost, "/nodes/alpha/qemu", vm(), "500 unable to create VM 800 - VM 800 already exists on node 'ryzen-proxmox'"},
		"parameter":      {http.MethodPut, vmPath + "/config", url.Values{"cores": {"0"}}, "400 Parameter verification failed."},
		"agent off":      {http.MethodGet, vmPath + "/agent/network-get-interfaces", nil, "500 VM 800 is not running"},
		"reboot":         {http.MethodPost, vmPath + "/status/reboot", nil, "500 VM 800 not running"},
		"storage":        {http.MethodGet, "/nodes/" + pve + "/storage/fast/content", nil, "500 storage 'fast' does not exist"},
		"root only":      {http.MethodPut, vmPath + "/config", url.Values{"args": {"-cpu host"}}, "500 only root can set 'args' config"},
		"not there":      {http.MethodGet, "/nodes/" + pve + "/ceph", nil, "501 Method 'GET /nodes/ryzen-proxmox/ceph' not implemented"},
		"next id taken":  {http.MethodGet, "/cluster/nextid?vmid=800", nil, "400 Parameter verification failed."},
		"pool":           {http.MethodGet, "/pools/none", nil, "500 pool 'none' does not exist"},
		"ha of no vm":    {http.MethodPost, "/cluster/ha/resources", url.Values{"sid": {"vm:5"}}, "500 resource 'vm:5' does not exist in cluster"},
		"url of nothing": {http.MethodGet, "/nodes/" + pve + "/query-url-metadata?url=" + url.QueryEscape(c.server.URL+"/x"), nil, "500 invalid server response: '501 Method 'HEAD /x' not implemented'"},
	} {
		t.Run(name, func(t *testing.T) {
			status, _ := c.do(call.method, call.path, call.params)
			assert.Equal(t, call.want, status)
		})
	}

	c.ok(http.MethodPost, vmPath+"/status/start", nil)
	_, upid := c.do(http.MethodPost, vmPath+"/status/start", nil)
	assert.Equal(t, "VM 800 already running", c.wait(upid.(string)))
	status, _ := c.do(http.MethodGet, vmPath+"/agent/network-get-interfaces", nil)
	assert.Equal(t, "500 QEMU guest agent is not running", status)
}

func TestWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	c := serve(t)

	status, _ := c.as(http.Header{}).do(http.MethodGet, "/version", nil)
	assert.Equal(t, "401 No ticket", status)
	status, _ = c.as(http.Header{"Authorization": {"PVEAPIToken=root@pam!lab=wrong"}}).do(http.MethodGet, "/version", nil)
	assert.Equal(t, "401 invalid token value!", status)
	viewer := c.as(http.Header{"Authorization": {"PVEAPIToken=" + readOnly}})
	status, _ = viewer.do(http.MethodPost, vmPath+"/status/start", nil)
	assert.Equal(t, "403 Permission check failed (/vms/800, VM.PowerMgmt)", status)

	status, _ = c.do(http.MethodPost, "/access/ticket", url.Values{"username": {"root@pam"}, "password": {"wrong"}})
	assert.Equal(t, "401 authentication failure", status)
	ticket := c.ok(http.MethodPost, "/access/ticket", url.Values{"username": {"root@pam"}, "password": {password}}).(map[string]any)
	header := http.Header{"Cookie": {"PVEAuthCookie=" + ticket["ticket"].(string)}}
	status, _ = c.as(header).do(http.MethodGet, "/version", nil)
	assert.Equal(t, "200 OK", status)
	status, _ = c.as(header).do(http.MethodPost, "/pools", url.Values{"poolid": {"a"}})
	assert.Equal(t, "401 Permission denied - invalid csrf token", status)
	header.Set("CSRFPreventionToken", ticket["CSRFPreventionToken"].(string))
	status, _ = c.as(header).do(http.MethodPost, "/pools", url.Values{"poolid": {"a"}})
	assert.Equal(t, "200 OK", status)
}

func TestPoolsHAAndMappings(t *testing.T) {
	t.Parallel()
	c := serve(t)
	c.ok(http.MethodPost, "/pools", url.Values{"poolid": {"k8s"}, "comment": {"cluster"}})
	params := vm()
	params.Set("pool", "k8s")
	c.ok(http.MethodPost, "/nodes/"+pve+"/qemu", params)

	pool := c.ok(http.MethodGet, "/pools/k8s", nil).(map[string]any)
	assert.InDelta(t, 800, pool["members"].([]any)[0].(map[string]any)["vmid"], 0)
	status, _ := c.do(http.MethodDelete, "/pools/k8s", nil)
	assert.Equal(t, "500 delete pool failed: pool 'k8s' is not empty (contains VM 800)", status)

	c.ok(http.MethodPost, "/cluster/ha/groups", url.Values{"group": {"gg"}, "type": {"group"}, "nodes": {"alpha:1,charlie"}})
	c.ok(http.MethodPost, "/cluster/ha/resources/", url.Values{"sid": {"vm:800"}, "group": {"gg"}, "max_restart": {"3"}})
	ha := c.ok(http.MethodGet, "/cluster/ha/resources/vm:800", nil).(map[string]any)
	assert.Equal(t, "started", ha["state"])
	assert.InDelta(t, 3, ha["max_restart"], 0)
	status, _ = c.do(http.MethodDelete, "/cluster/ha/groups/gg", nil)
	assert.Equal(t, "500 ha group is used by service 'vm:800'", status)

	entry := "id=8086:9a49,node=" + pve + ",path=0000:00:02.0"
	c.ok(http.MethodPost, "/cluster/mapping/pci", url.Values{"id": {"iGPU"}, "map": {entry}, "description": {"graphics"}})
	m := c.ok(http.MethodGet, "/cluster/mapping/pci/iGPU", nil).(map[string]any)
	assert.Equal(t, []any{entry}, m["map"])
	c.ok(http.MethodPut, vmPath+"/config", url.Values{"hostpci0": {"mapping=iGPU,pcie=1"}})

	c.ok(http.MethodPut, "/cluster/ha/resources/vm:800", url.Values{"state": {"ignored"}})
	c.ok(http.MethodPost, vmPath+"/status/stop", nil)
	c.ok(http.MethodDelete, vmPath+"?purge=1", nil)
	assert.Empty(t, c.ok(http.MethodGet, "/cluster/ha/resources", nil), "purge takes it out of HA")
	c.ok(http.MethodDelete, "/pools/k8s", nil)
}

func TestPitfallNewerProxmoxHasNoHAGroups(t *testing.T) {
	t.Parallel()
	d := site.DefaultDefinition()
	d.Clusters[0].PVE = 9
	c := serveDefinition(t, &d)
	c.ok(http.MethodPost, "/nodes/"+pve+"/qemu", vm())

	assert.Equal(t, "9.1.1", c.ok(http.MethodGet, "/version", nil).(map[string]any)["version"])
	status, _ := c.do(http.MethodPost, "/cluster/ha/groups", url.Values{"group": {"gg"}, "type": {"group"}, "nodes": {"alpha:1,charlie"}})
	assert.Equal(t, "500 cannot create group: ha groups have been migrated to rules", status)
	status, _ = c.do(http.MethodPost, "/cluster/ha/resources/", url.Values{"sid": {"vm:800"}, "group": {"gg"}})
	assert.Equal(t, "500 invalid parameter 'group': ha groups have been migrated to rules", status)
	c.ok(http.MethodPost, "/cluster/ha/resources/", url.Values{"sid": {"vm:800"}})
}

func TestPermissionsAreTold(t *testing.T) {
	t.Parallel()
	c := serve(t)

	status, data := c.as(http.Header{"Authorization": {"PVEAPIToken=" + readOnly}}).do(http.MethodGet, "/access/permissions?path=/vms/100", nil)
	assert.Equal(t, "200 OK", status)
	assert.Equal(t, map[string]any{"/vms/100": map[string]any{"VM.Audit": 1.0}}, data)
	_, data = c.do(http.MethodGet, "/access/permissions?path=/vms", nil)
	assert.Contains(t, data.(map[string]any)["/vms"], "VM.Migrate")
	status, data = c.do(http.MethodGet, "/nodes/"+pve+"/time", nil)
	assert.Equal(t, "200 OK", status)
	assert.InDelta(t, time.Now().Unix(), data.(map[string]any)["time"], 5)
}
