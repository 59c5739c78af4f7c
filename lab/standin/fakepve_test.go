// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package standin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// fakePVE plays as much of a Proxmox VE API as one VM and one file need. Tasks end at once.
type fakePVE struct {
	*httptest.Server

	mu    sync.Mutex
	calls []string
	vms   map[int]map[string]string
	on    map[int]bool
	files map[string]int
}

func newFakePVE(t *testing.T) *fakePVE {
	t.Helper()

	f := &fakePVE{vms: map[int]map[string]string{}, on: map[int]bool{}, files: map[string]int{}}
	f.Server = httptest.NewTLSServer(f)
	t.Cleanup(f.Close)

	return f
}

// took returns the calls so far that change something, and forgets them.
func (f *fakePVE) took() []string {
	f.mu.Lock()
	defer f.mu.Unlock()

	out := f.calls
	f.calls = nil

	return out
}

func (f *fakePVE) config(id int) map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()

	return f.vms[id]
}

func (f *fakePVE) set(id int, key, value string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.vms[id][key] = value
}

func (f *fakePVE) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()

	if r.Header.Get("Authorization") != "PVEAPIToken="+token {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}

	_ = r.ParseForm()
	path := strings.TrimPrefix(r.URL.EscapedPath(), "/api2/json/")
	if r.Method != http.MethodGet {
		f.calls = append(f.calls, r.Method+" "+path)
	}

	data, code := f.answer(r.Method, strings.Split(strings.TrimSuffix(path, "/"), "/"), r)
	if code != 0 {
		w.WriteHeader(code)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
}

const task = "UPID:pve1:0000:0000:0000:qm:1:root@pam:"

func (f *fakePVE) answer(method string, p []string, r *http.Request) (any, int) {
	rest := strings.Join(p[min(2, len(p)):], "/")

	switch {
	case strings.Join(p, "/") == "cluster/resources":
		list := []map[string]any{}
		for id := range f.vms {
			list = append(list, map[string]any{"vmid": id, "node": "pve1"})
		}
		return list, 0
	case strings.HasPrefix(rest, "tasks/"):
		return map[string]string{"status": "stopped", "exitstatus": "OK"}, 0
	case rest == "query-url-metadata":
		return map[string]any{"filename": "talos.iso", "size": 7}, 0
	case rest == "storage/local/download-url":
		f.files["local:"+r.Form.Get("content")+"/"+r.Form.Get("filename")] = 7
		return task, 0
	case rest == "storage/local/content":
		list := []map[string]any{}
		for id, size := range f.files {
			list = append(list, map[string]any{"volid": id, "size": size})
		}
		return list, 0
	case strings.HasPrefix(rest, "storage/local/content/"):
		id, _ := url.PathUnescape(strings.TrimPrefix(rest, "storage/local/content/"))
		delete(f.files, id)
		return nil, 0
	case len(p) > 2 && p[2] == "qemu":
		return f.qemu(method, p[3:], r)
	}

	return nil, http.StatusNotImplemented
}

func (f *fakePVE) qemu(method string, p []string, r *http.Request) (any, int) {
	if len(p) == 0 {
		id, _ := strconv.Atoi(r.Form.Get("vmid"))
		f.vms[id] = map[string]string{}
		f.write(id, r.Form)
		return task, 0
	}

	id, _ := strconv.Atoi(p[0])
	if f.vms[id] == nil {
		return nil, http.StatusNotFound
	}

	switch action := method + " " + strings.Join(p[1:], "/"); action {
	case "GET config":
		return f.vms[id], 0
	case "PUT config":
		f.write(id, r.Form)
		return nil, 0
	case "PUT resize":
		key := r.Form.Get("disk")
		first, _, _ := strings.Cut(f.vms[id][key], ",size=")
		f.vms[id][key] = first + ",size=" + r.Form.Get("size")
		return task, 0
	case "GET status/current":
		return map[string]string{"status": map[bool]string{true: "running", false: "stopped"}[f.on[id]]}, 0
	case "POST status/start":
		f.on[id] = true
		return task, 0
	case "POST status/stop", "POST status/shutdown":
		f.on[id] = false
		return task, 0
	case "POST status/reboot":
		return task, 0
	case "DELETE ":
		delete(f.vms, id)
		return task, 0
	}

	return nil, http.StatusNotImplemented
}

// write stores settings in the form in which Proxmox VE gives them back.
func (f *fakePVE) write(id int, form url.Values) {
	for key, values := range form {
		v := values[0]

		switch {
		case key == "vmid" || key == "delete":
			continue
		case strings.HasPrefix(key, "net"):
			var model, mac, others string
			for part := range strings.SplitSeq(v, ",") {
				name, value, _ := strings.Cut(part, "=")
				switch name {
				case "model":
					model = value
				case "macaddr":
					mac = value
				default:
					others += "," + part
				}
			}
			v = model + "=" + mac + others
		case strings.HasPrefix(v, "file=") && !strings.Contains(v, "media=cdrom"):
			v = f.disk(id, v)
		case strings.HasPrefix(v, "file="):
			v = strings.TrimPrefix(v, "file=")
		case key == "cpu":
			v = strings.TrimPrefix(v, "cputype=")
		}
		f.vms[id][key] = v
	}

	for key := range strings.SplitSeq(form.Get("delete"), ",") {
		delete(f.vms[id], key)
	}
}

func (f *fakePVE) disk(id int, v string) string {
	parts := strings.Split(v, ",")
	store, size, _ := strings.Cut(strings.TrimPrefix(parts[0], "file="), ":")

	volume, bytes := store+":"+size, ""
	if n, err := strconv.Atoi(size); err == nil {
		volume, bytes = fmt.Sprintf("%s:vm-%d-disk-0", store, id), fmt.Sprintf("%dG", n)
	}

	out := volume
	for _, part := range parts[1:] {
		switch {
		case strings.HasPrefix(part, "size=") && bytes == "":
			bytes = strings.TrimPrefix(part, "size=")
		case strings.HasPrefix(part, "size="), strings.HasPrefix(part, "format="):
		default:
			out += "," + part
		}
	}

	return out + ",size=" + bytes
}

// token is what the fake takes.
const token = "root@pam!lab=11111111-2222-3333-4444-555555555555"
