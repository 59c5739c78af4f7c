// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmox

import (
	"strconv"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/site"
	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
)

// Version is the Proxmox VE version that the lab plays unless a site asks for a newer one.
const Version = "8.3.5"

// newerVersion is that of a site which asks for Proxmox VE 9.
const newerVersion = "9.1.1"

type object = map[string]any

func bit(b bool) int {
	if b {
		return 1
	}

	return 0
}

func (a *api) cluster() {
	a.handle("GET /version", "", func(r *request) (any, error) {
		version, release := Version, "8.3"
		if r.cluster.PVE() > 8 { // the version before
			version, release = newerVersion, "9.1"
		}

		return object{"version": version, "release": release, "repoid": "dac3aa88bac3f300", "console": "html5"}, nil
	})
	a.handle("GET /cluster/nextid", "", func(r *request) (any, error) {
		want := 0
		if s := r.param("vmid"); s != "" {
			n, err := strconv.Atoi(s)
			if err != nil {
				return nil, bad("vmid", "type check ('integer') failed - got '"+s+"'")
			}
			want = n
		}
		id, err := r.cluster.NextID(want)
		if err != nil {
			return nil, err
		}

		return strconv.Itoa(id), nil
	})
	a.handle("GET /cluster/resources", "", resources)
	a.handle("GET /cluster/status", "Sys.Audit", func(r *request) (any, error) {
		hosts := r.cluster.Hosts()
		all := []object{{"type": "cluster", "id": "cluster", "name": r.cluster.Name(), "nodes": len(hosts), "quorate": 1, "version": 1}}
		for i, h := range hosts {
			all = append(all, object{"type": "node", "id": "node/" + h.Name, "name": h.Name, "online": 1, "nodeid": i + 1, "local": bit(i == 0)})
		}

		return all, nil
	})
	a.handle("GET /cluster/options", "", func(*request) (any, error) { return object{"keyboard": "en-us", "allowed-tags": []string{}}, nil })
	a.handle("GET /cluster/tasks", "", func(r *request) (any, error) { return taskList(a.site.Tasks("")), nil })
}

func bad(field, text string) error {
	return &pve.Error{Status: 400, Message: "Parameter verification failed.", Fields: map[string]string{field: text}}
}

func resources(r *request) (any, error) {
	kind := r.param("type")
	all := []object{}

	if kind == "" || kind == "vm" {
		for _, v := range r.cluster.VMs() {
			if r.check(at("/vms/"+strconv.Itoa(v.ID), "VM.Audit")) != nil {
				continue // as if there were none
			}
			all = append(all, vmResource(r, v))
		}
	}
	for _, h := range r.cluster.Hosts() {
		if kind == "" || kind == "node" {
			all = append(all, object{
				"type": "node", "id": "node/" + h.Name, "node": h.Name, "status": "online",
				"maxcpu": h.Cores, "maxmem": int64(h.MemoryMiB) << 20,
			})
		}
		if kind != "" && kind != "storage" {
			continue
		}
		storages, err := r.cluster.Storages(h.Name)
		if err != nil {
			return nil, err
		}
		for _, s := range storages {
			all = append(all, object{
				"type": "storage", "id": "storage/" + h.Name + "/" + s.ID, "storage": s.ID, "node": h.Name, "status": "available",
				"plugintype": s.Type, "maxdisk": s.SizeBytes, "disk": s.Used, "shared": bit(s.Shared),
			})
		}
	}

	return all, nil
}

func vmResource(r *request, v site.VM) object {
	o := object{
		"type": "qemu", "id": "qemu/" + strconv.Itoa(v.ID), "vmid": v.ID, "node": v.Host, "name": v.Name,
		"status": power(v), "template": bit(v.Config["template"] == "1"), "uptime": v.Uptime,
		"maxcpu": number(v.Config["cores"], 1), "maxmem": int64(number(v.Config["memory"], 512)) << 20,
	}
	if v.Pool != "" {
		o["pool"] = v.Pool
	}
	if tags := v.Config["tags"]; tags != "" {
		o["tags"] = tags
	}
	r.cluster.View(func(objects site.Objects) {
		if ha, ok := objects.HAResources()["vm:"+strconv.Itoa(v.ID)]; ok {
			o["hastate"] = ha.Settings["state"]
		}
	})

	return o
}

func power(v site.VM) string {
	if v.Running {
		return "running"
	}

	return "stopped"
}

func number(s string, fallback int) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return fallback
	}

	return n
}

func split(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ';' || r == ' ' })
}
