// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package policy

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// checkBackups looks for disks that Proxmox VE's backups leave out, and for clusters without scheduled snapshots of etcd.
func (p *Pack) checkBackups(r Resource) []string {
	switch {
	case r.Type == vmType:
		return unsavedDisks(r)
	case r.Type == stashType && strings.HasSuffix(r.Name, "-manifests") && !p.backsEtcdUp(r.Inputs["input"]):
		return []string{fmt.Sprintf("cluster %q has no scheduled backup of etcd: set kubernetes.etcd.backup",
			strings.TrimSuffix(r.Name, "-manifests"))}
	default:
		return nil
	}
}

func unsavedDisks(r Resource) []string {
	disks := known(r.Inputs["disks"])
	if !disks.IsArray() {
		return nil
	}
	var found []string
	for _, element := range disks.ArrayValue() {
		disk := known(element)
		if !disk.IsObject() {
			continue
		}
		if backup := known(disk.ObjectValue()["backup"]); backup.IsBool() && !backup.BoolValue() {
			found = append(found, fmt.Sprintf("disk %v of VM %s is left out of Proxmox VE's backups (backup: false)",
				known(disk.ObjectValue()["interface"]).V, quoted(r)))
		}
	}

	return found
}

// backsEtcdUp reports whether one of the objects that a cluster gets from Talos takes snapshots. While they are not
// known, as in the plan of a new cluster, the stack's configuration says it; a program without any cannot be judged then.
func (p *Pack) backsEtcdUp(objects resource.PropertyValue) bool {
	if all := known(objects); all.IsObject() {
		for id := range all.ObjectValue() {
			if strings.HasPrefix(string(id), "batch/v1/CronJob/") && strings.HasSuffix(string(id), "/talos-backup") {
				return true
			}
		}

		return false
	}
	judged := false
	for key, value := range p.Config {
		_, name, _ := strings.Cut(key, ":")
		judged = judged || name == "nodes" || name == "pools"
		var kubernetes struct {
			Etcd struct {
				Backup json.RawMessage `json:"backup"`
			} `json:"etcd"`
		}
		if name == "kubernetes" && json.Unmarshal([]byte(value), &kubernetes) == nil && len(kubernetes.Etcd.Backup) > 0 {
			return true
		}
	}

	return !judged
}
