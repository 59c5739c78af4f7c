// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmox

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/talos-proxmox/talos-proxmox/lab/site"
	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
	"github.com/talos-proxmox/talos-proxmox/lab/site/pve/schema"
)

const vmPath = "/nodes/{node}/qemu/{vmid}"

// vmHandler answers a call about one VM.
type vmHandler func(r *request, node string, id int) (any, error)

func (a *api) vm(pattern, privilege string, h vmHandler) {
	a.handle(pattern, privilege, func(r *request) (any, error) {
		id, err := vmid(r)
		if err != nil {
			return nil, err
		}

		return h(r, r.PathValue("node"), id)
	})
}

// createVM takes the call that creates a VM.
func createVM(r *request) (any, error) {
	id, err := strconv.Atoi(r.param("vmid"))
	if err != nil {
		return nil, bad("vmid", "property is missing and it is not optional")
	}
	path := "/vms/" + strconv.Itoa(id)
	if p := r.param("pool"); p == "" || r.check(at("/pool/"+p, "VM.Allocate")) != nil {
		if err := r.check(at(path, "VM.Allocate")); err != nil {
			return nil, denied()
		}
	}
	if err := site.CheckRoot(r.params(), r.user); err != nil {
		return nil, err
	}
	if err := r.check(settingNeeds(path, r.params(), true)...); err != nil {
		return nil, err
	}

	return upid(r.cluster.Create(r.PathValue("node"), id, r.params(), r.user))
}

func (a *api) qemu() {
	a.handle("GET /nodes/{node}/qemu", "", func(r *request) (any, error) {
		all := []object{}
		for _, v := range r.cluster.VMs() {
			if v.Host == r.PathValue("node") {
				all = append(all, status(v))
			}
		}

		return all, r.cluster.CheckHost(r.PathValue("node"))
	})
	a.handle("POST /nodes/{node}/qemu", "", createVM)
	a.vm("GET "+vmPath+"/config", "VM.Audit", config)
	a.vm("GET "+vmPath+"/pending", "VM.Audit", pending)
	for _, method := range []string{"PUT ", "POST "} {
		a.vm(method+vmPath+"/config", "", func(r *request, node string, id int) (any, error) {
			if err := mayChange(r, id); err != nil {
				return nil, err
			}

			if method == "POST " {
				return upid(r.cluster.UpdateTask(node, id, r.params(), r.user))
			}

			return nil, r.cluster.Update(node, id, r.params(), r.user)
		})
	}
	a.vm("PUT "+vmPath+"/resize", "VM.Config.Disk", func(r *request, node string, id int) (any, error) {
		return upid(r.cluster.Resize(node, id, r.param("disk"), r.param("size"), r.user))
	})
	a.vm("POST "+vmPath+"/move_disk", "VM.Config.Disk", func(r *request, node string, id int) (any, error) {
		if r.param("storage") == "" && r.param("target-vmid") == "" {
			text := "both 'storage' and 'target-vmid' missing, either needs to be set"

			return nil, &pve.Error{
				Status: http.StatusBadRequest, Message: "Parameter verification failed.",
				Fields: map[string]string{"storage": text, "target-vmid": text},
			}
		}
		if err := r.check(at("/storage/"+r.param("storage"), "Datastore.AllocateSpace")); err != nil {
			return nil, err
		}

		return upid(r.cluster.MoveDisk(node, id, r.param("disk"), r.param("storage"), r.param("format"), r.flag("delete"), r.user))
	})
	a.vm("POST "+vmPath+"/migrate", "VM.Migrate", func(r *request, node string, id int) (any, error) {
		return upid(r.cluster.Migrate(node, id, r.param("target"), r.param("targetstorage"), r.flag("online"),
			r.flag("with-local-disks"), r.user))
	})
	a.vm("POST "+vmPath+"/clone", "VM.Clone", func(r *request, node string, id int) (any, error) {
		newID, err := strconv.Atoi(r.param("newid"))
		if err != nil {
			return nil, bad("newid", "property is missing and it is not optional")
		}
		if err := r.check(at("/vms/"+strconv.Itoa(newID), "VM.Allocate")); err != nil {
			return nil, err
		}

		return upid(r.cluster.Clone(node, id, newID, r.params(), r.user))
	})
	a.vm("POST "+vmPath+"/template", "VM.Allocate", func(r *request, node string, id int) (any, error) {
		return upid(r.cluster.Template(node, id, r.user))
	})
	remove := func(r *request, node string, id int) (any, error) {
		return upid(r.cluster.Delete(node, id, r.flag("purge"), r.user))
	}
	a.vm("DELETE "+vmPath, "VM.Allocate", remove)
	a.vm("DELETE "+vmPath+"/{$}", "VM.Allocate", remove)
	a.power()
	a.vm("GET "+vmPath+"/agent/network-get-interfaces", "", func(r *request, node string, id int) (any, error) {
		privileges := []string{"VM.Monitor"}
		if r.cluster.PVE() >= 9 { // which has no VM.Monitor
			privileges = []string{"VM.GuestAgent.Audit", "VM.GuestAgent.Unrestricted"}
		}
		if err := r.check(at("/vms/"+strconv.Itoa(id), privileges...)); err != nil {
			return nil, err
		}

		return agent(r, node, id)
	})
}

func (a *api) power() {
	a.vm("GET "+vmPath+"/status/current", "VM.Audit", func(r *request, node string, id int) (any, error) {
		v, err := r.cluster.VM(node, id)
		if err != nil {
			return nil, err
		}

		return status(v), nil
	})
	a.vm("POST "+vmPath+"/status/start", "VM.PowerMgmt", func(r *request, node string, id int) (any, error) {
		return upid(r.cluster.Start(node, id, r.user))
	})
	a.vm("POST "+vmPath+"/status/stop", "VM.PowerMgmt", func(r *request, node string, id int) (any, error) {
		return upid(r.cluster.Stop(node, id, r.user))
	})
	a.vm("POST "+vmPath+"/status/shutdown", "VM.PowerMgmt", func(r *request, node string, id int) (any, error) {
		return upid(r.cluster.Shutdown(node, id, timeout(r), r.flag("forceStop"), r.user))
	})
	a.vm("POST "+vmPath+"/status/reboot", "VM.PowerMgmt", func(r *request, node string, id int) (any, error) {
		return upid(r.cluster.Reboot(node, id, timeout(r), r.user))
	})
	a.vm("POST "+vmPath+"/status/reset", "VM.PowerMgmt", func(r *request, node string, id int) (any, error) {
		return upid(r.cluster.Reset(node, id, r.user))
	})
}

func timeout(r *request) time.Duration {
	return time.Duration(number(r.param("timeout"), 0)) * time.Second
}

// config returns the configuration with pending changes, or without when "current" is set. Numbers and
// booleans are numbers, as there; memory is text.
func config(r *request, node string, id int) (any, error) {
	v, err := r.cluster.VM(node, id)
	if err != nil {
		return nil, err
	}

	if r.param("snapshot") != "" {
		return nil, pve.Errorf("snapshot '%s' does not exist", r.param("snapshot"))
	}
	from := v.Wanted
	if r.flag("current") {
		from = v.Config
	}
	d, err := schema.Load(r.cluster.PVE())
	if err != nil {
		return nil, err
	}
	numbers := d.Numbers()
	o := object{"digest": v.Digest}
	for k, s := range from {
		o[k] = s
		if n, err := strconv.Atoi(s); err == nil && slices.Contains(numbers, k) {
			o[k] = n
		}
	}
	if v.Lock != "" {
		o["lock"] = v.Lock
	}

	return o, nil
}

func pending(r *request, node string, id int) (any, error) {
	v, err := r.cluster.VM(node, id)
	if err != nil {
		return nil, err
	}

	keys := maps.Clone(v.Config)
	maps.Copy(keys, v.Wanted)
	all := []object{}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		o := object{"key": k}
		now, has := v.Config[k]
		next, stays := v.Wanted[k]
		if has {
			o["value"] = now
		}
		switch {
		case !stays:
			o["delete"] = 1
		case now != next:
			o["pending"] = next
		}
		all = append(all, o)
	}

	return all, nil
}

func status(v site.VM) object {
	o := object{
		"vmid": v.ID, "name": v.Name, "status": power(v), "qmpstatus": power(v), "uptime": v.Uptime,
		"cpus":   number(v.Config["cores"], 1) * number(v.Config["sockets"], 1),
		"maxmem": int64(number(v.Config["memory"], 512)) << 20, "mem": 0, "cpu": 0, "ha": object{"managed": 0},
	}
	if a := v.Config["agent"]; a != "" && a[0] != '0' && a != "enabled=0" {
		o["agent"] = 1
	}
	if v.PID != 0 {
		o["pid"] = v.PID
	}
	if v.Lock != "" {
		o["lock"] = v.Lock
	}
	if tags := v.Config["tags"]; tags != "" {
		o["tags"] = tags
	}
	if v.Config["template"] == "1" {
		o["template"] = 1
	}

	return o
}

func agent(r *request, node string, id int) (any, error) {
	interfaces, err := r.cluster.AgentInterfaces(node, id)
	if err != nil {
		return nil, err
	}

	all := []object{}
	for _, i := range interfaces {
		addresses := []object{}
		for _, p := range i.Addresses {
			kind := "ipv4"
			if p.Addr().Is6() {
				kind = "ipv6"
			}
			addresses = append(addresses, object{"ip-address": p.Addr().String(), "ip-address-type": kind, "prefix": p.Bits()})
		}
		all = append(all, object{"name": i.Name, "hardware-address": i.MAC, "ip-addresses": addresses})
	}

	return object{"result": all}, nil
}
