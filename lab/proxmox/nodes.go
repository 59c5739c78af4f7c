// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmox

import (
	"fmt"
	"strconv"
	"time"

	"github.com/talos-proxmox/talos-proxmox/lab/site"
)

func (a *api) nodes() {
	a.handle("GET /nodes", "", func(r *request) (any, error) {
		all := []object{}
		for _, h := range r.cluster.Hosts() {
			status := "online"
			if !r.cluster.HostUp(h.Name) {
				status = "offline"
			}
			all = append(all, object{
				"node": h.Name, "id": "node/" + h.Name, "type": "node", "status": status, "level": "",
				"maxcpu": h.Cores, "maxmem": int64(h.MemoryMiB) << 20, "cpu": 0.01, "mem": 1 << 30, "uptime": 86400,
			})
		}

		return all, nil
	})
	a.handle("GET /nodes/{node}/status", "Sys.Audit", nodeStatus)
	a.handle("GET /nodes/{node}/version", "", func(r *request) (any, error) {
		return object{"version": Version, "release": "8.3", "repoid": "dac3aa88bac3f300"}, r.cluster.CheckHost(r.PathValue("node"))
	})
	a.handle("GET /nodes/{node}/time", "Sys.Audit", func(r *request) (any, error) {
		now := time.Now().Unix()

		return object{"time": now, "localtime": now, "timezone": "UTC"}, r.cluster.CheckHost(r.PathValue("node"))
	})
	a.handle("GET /nodes/{node}/network", "", network)
	a.handle("GET /nodes/{node}/dns", "Sys.Audit", func(r *request) (any, error) {
		return object{"search": "lab.internal", "dns1": "127.0.0.1"}, r.cluster.CheckHost(r.PathValue("node"))
	})
	a.handle("GET /nodes/{node}/tasks", "", func(r *request) (any, error) {
		return taskList(a.site.Tasks(r.PathValue("node"))), r.cluster.CheckHost(r.PathValue("node"))
	})
	a.handle("GET /nodes/{node}/tasks/{upid}/status", "", a.taskStatus)
	a.handle("GET /nodes/{node}/tasks/{upid}/log", "", a.taskLog)
	a.handle("DELETE /nodes/{node}/tasks/{upid}", "", func(r *request) (any, error) {
		_, err := a.site.Task(r.PathValue("upid")) // stopping one that has ended does nothing

		return nil, err
	})
	a.handle("GET /nodes/{node}/query-url-metadata", "", func(r *request) (any, error) {
		if err := r.check(at("/", "Sys.Audit"), at("/", "Sys.Modify")); err != nil {
			return nil, denied()
		}
		m, err := r.cluster.QueryURL(r.Context(), r.PathValue("node"), r.param("url"))
		if err != nil {
			return nil, err
		}
		o := object{"filename": m.Filename}
		if m.Mimetype != "" {
			o["mimetype"] = m.Mimetype
		}
		if m.Size >= 0 {
			o["size"] = m.Size
		}

		return o, nil
	})
}

func nodeStatus(r *request) (any, error) {
	name := r.PathValue("node")
	if err := r.cluster.CheckHost(name); err != nil {
		return nil, err
	}

	for _, h := range r.cluster.Hosts() {
		if h.Name == name {
			total := int64(h.MemoryMiB) << 20

			return object{
				"cpuinfo": object{"cores": h.Cores, "sockets": 1, "cpus": h.Cores, "model": "lab"},
				"memory":  object{"total": total, "used": int64(1) << 30, "free": total - 1<<30, "available": total - 1<<30},
				"rootfs":  object{"total": int64(100) << 30, "used": int64(10) << 30, "free": int64(90) << 30, "avail": int64(90) << 30},
				"uptime":  86400, "cpu": 0.01, "loadavg": []string{"0.01", "0.01", "0.00"}, "boot-info": object{"mode": "efi"},
				"current-kernel": object{
					"machine": "x86_64", "release": "6.8.12-1-pve", "sysname": "Linux", "version": "#1 SMP PREEMPT_DYNAMIC PMX",
				},
				"pveversion": "pve-manager/" + Version,
			}, nil
		}
	}

	return nil, fmt.Errorf("node '%s' is not online", name)
}

func network(r *request) (any, error) {
	name := r.PathValue("node")
	bridges, err := r.cluster.Bridges(name)
	if err != nil {
		return nil, err
	}
	address := r.cluster.HostAddress(name).String()

	all := []object{}
	for i, b := range bridges {
		o := object{
			"iface": b, "type": "bridge", "active": 1, "autostart": 1, "exists": 1, "priority": i + 1,
			"method": "manual", "method6": "manual", "families": []string{"inet"},
			"bridge_ports": "", "bridge_stp": "off", "bridge_vlan_aware": 1,
		}
		if i == 0 {
			o["method"], o["address"], o["netmask"], o["cidr"] = "static", address, "24", address+"/24"
		}
		all = append(all, o)
	}

	return all, nil
}

func (a *api) taskStatus(r *request) (any, error) {
	t, err := a.site.Task(r.PathValue("upid"))
	if err != nil {
		return nil, err
	}

	o := object{
		"upid": t.UPID, "node": t.Node, "pid": t.PID, "type": t.Type, "id": t.ID, "user": t.User,
		"starttime": t.Start.Unix(), "status": "running",
	}
	if t.Exit != "" {
		o["status"], o["exitstatus"] = "stopped", t.Exit
	}

	return o, nil
}

func (a *api) taskLog(r *request) (any, error) {
	t, err := a.site.Task(r.PathValue("upid"))
	if err != nil {
		return nil, err
	}

	start, limit := number(r.param("start"), 0), number(r.param("limit"), 50)
	lines := []object{}
	for i := start; i < len(t.Log) && len(lines) < limit; i++ {
		lines = append(lines, object{"n": i + 1, "t": t.Log[i]})
	}

	return lines, nil
}

func taskList(tasks []site.Task) []object {
	all := []object{}
	for _, t := range tasks {
		o := object{
			"upid": t.UPID, "node": t.Node, "pid": t.PID, "pstart": 0, "type": t.Type, "id": t.ID, "user": t.User,
			"starttime": t.Start.Unix(),
		}
		if t.Exit != "" {
			o["endtime"], o["status"] = t.End.Unix(), t.Exit
		}
		all = append(all, o)
	}

	return all
}

// vmid reads the path's VM id.
func vmid(r *request) (int, error) {
	id, err := strconv.Atoi(r.PathValue("vmid"))
	if err != nil {
		return 0, bad("vmid", "type check ('integer') failed - got '"+r.PathValue("vmid")+"'")
	}

	return id, nil
}
