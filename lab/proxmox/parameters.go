// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmox

import (
	"net/http"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
)

// parameters returns, by call, the parameters that Proxmox VE 8 or 9 knows beside those of the path, as its published
// API description has them; "!" marks one that is required. Calls whose parameters are the settings of a VM, and
// uploads, look at theirs themselves.
func parameters() map[string]string {
	return map[string]string{
		"GET /access/permissions": "path userid",
		"GET /cluster/nextid":     "vmid",
		"GET /cluster/resources":  "type",
		"POST /cluster/ha/groups": "comment group! nodes! " +
			"nofailback restricted type",
		"PUT /cluster/ha/groups/{id}": "comment delete digest " +
			"nodes nofailback restricted",
		"GET /cluster/ha/resources": "type",
		"POST /cluster/ha/resources": "comment failback group max_relocate " +
			"max_restart sid! state type",
		"PUT /cluster/ha/resources/{id}": "comment delete digest failback " +
			"group max_relocate max_restart state",
		"DELETE /cluster/ha/resources/{id}": "purge",
		"GET /cluster/mapping/pci":          "check-node",
		"POST /cluster/mapping/pci": "description id! " +
			"live-migration-capable map! mdev",
		"PUT /cluster/mapping/pci/{id}": "delete description digest " +
			"live-migration-capable map mdev",
		"GET /cluster/mapping/usb":      "check-node",
		"POST /cluster/mapping/usb":     "description id! map!",
		"PUT /cluster/mapping/usb/{id}": "delete description digest map!",
		"GET /nodes/{node}/network":     "type",
		"GET /nodes/{node}/tasks": "errors limit since source start " +
			"statusfilter typefilter until userfilter vmid",
		"GET /nodes/{node}/tasks/{upid}/log":   "download limit start",
		"GET /nodes/{node}/query-url-metadata": "url! verify-certificates",
		"GET /pools":                           "poolid type",
		"POST /pools":                          "comment poolid!",
		"GET /pools/{pool}":                    "type",
		"PUT /pools/{pool}":                    "allow-move comment delete storage vms",
		"GET /nodes/{node}/qemu":               "full",
		"GET /nodes/{node}/qemu/{vmid}/config": "current snapshot",
		"PUT /nodes/{node}/qemu/{vmid}/resize": "digest disk! size! skiplock",
		"POST /nodes/{node}/qemu/{vmid}/move_disk": "bwlimit delete digest disk! " +
			"format storage target-digest target-disk target-vmid",
		"POST /nodes/{node}/qemu/{vmid}/migrate": "bwlimit force migration_network migration_type " +
			"online target! targetstorage with-conntrack-state with-local-disks",
		"POST /nodes/{node}/qemu/{vmid}/clone": "bwlimit description format full name " +
			"newid! pool snapname storage target",
		"POST /nodes/{node}/qemu/{vmid}/template": "disk",
		"DELETE /nodes/{node}/qemu/{vmid}":        "destroy-unreferenced-disks purge skiplock",
		"POST /nodes/{node}/qemu/{vmid}/status/start": "force-cpu machine migratedfrom migration_network migration_type " +
			"nets-host-mtu skiplock stateuri targetstorage timeout with-conntrack-state",
		"POST /nodes/{node}/qemu/{vmid}/status/stop": "keepActive migratedfrom " +
			"overrule-shutdown skiplock timeout",
		"POST /nodes/{node}/qemu/{vmid}/status/shutdown": "forceStop keepActive skiplock timeout",
		"POST /nodes/{node}/qemu/{vmid}/status/reboot":   "timeout",
		"POST /nodes/{node}/qemu/{vmid}/status/reset":    "skiplock",
		"GET /storage":                                            "type",
		"GET /nodes/{node}/storage":                               "content enabled format storage target",
		"GET /nodes/{node}/storage/{storage}/content":             "content vmid",
		"DELETE /nodes/{node}/storage/{storage}/content/{volume}": "delay",
		"POST /nodes/{node}/storage/{storage}/download-url": "checksum checksum-algorithm compression " +
			"content! filename! url! verify-certificates",
	}
}

// unchecked reports whether a call looks at its parameters itself.
func unchecked(pattern string) bool {
	return strings.HasSuffix(pattern, "/upload") || strings.HasPrefix(pattern, "P") &&
		(strings.HasSuffix(pattern, "/qemu") || strings.HasSuffix(pattern, "/config"))
}

// checkParameters refuses parameters that Proxmox VE does not know, and calls without one that it requires.
func checkParameters(pattern string, r *http.Request, form map[string][]string) error {
	if unchecked(pattern) {
		return nil
	}
	known, problems := map[string]bool{}, map[string]string{}
	for _, name := range strings.Fields(parameters()[pattern]) {
		plain, required := strings.CutSuffix(name, "!")
		known[plain] = true
		if _, given := form[plain]; required && !given {
			problems[plain] = "property is missing and it is not optional"
		}
	}
	for name, values := range form {
		switch inPath := pathValue(r, name); {
		case inPath != "" && len(values) > 0 && values[0] != inPath:
			problems[name] = "duplicate parameter (already defined in URI) with conflicting values!"
		case inPath == "" && !known[name]:
			problems[name] = "property is not defined in schema and the schema does not allow additional properties"
		}
	}
	if len(problems) > 0 {
		return &pve.Error{Status: http.StatusBadRequest, Message: "Parameter verification failed.", Fields: problems}
	}

	return nil
}

// pathValue returns the part of the path that a parameter names, whatever the lab calls it.
func pathValue(r *http.Request, name string) string {
	switch name {
	case "sid", "group":
		name = "id"
	case "poolid":
		name = "pool"
	}

	return r.PathValue(name)
}
