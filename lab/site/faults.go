// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/talos-proxmox/talos-proxmox/lab/fault"
)

// trouble fails a task, or holds it up, where a fault says so.
func (s *Site) trouble(ctx context.Context, node, kind, id string) error {
	about := fault.About{"host": {node}, "type": {kind}, "vm": {id}}
	if n, err := strconv.Atoi(id); err == nil {
		about["vm"] = s.namesOf(n)
	}
	object := kind + "/" + cmp.Or(id, node)

	if f, yes := s.opts.Faults.Strike(fault.TaskHang, object, about); yes {
		select {
		case <-f.Over:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	f, yes := s.opts.Faults.Strike(fault.TaskError, object, about)
	if !yes {
		return nil
	}
	if m := f.With["message"]; m != "" {
		return errors.New(m)
	}

	return errors.New(taskError(kind, id))
}

// taskError returns what a task of that type often fails with.
func taskError(kind, id string) string {
	switch kind {
	case "qmstart":
		return "start failed: QEMU exited with code 1"
	case "download":
		return "download failed: exit code 4"
	case "imgdel", "imgcopy":
		return "can't lock file '/var/lock/pve-manager/pve-storage-local' - got timeout"
	}

	return fmt.Sprintf("can't lock file '/var/lock/qemu-server/lock-%s.conf' - got timeout", id)
}

// damage returns what the network does to a download.
func (s *Site) damage(host, name string, data []byte, say sayf) ([]byte, error) {
	about := fault.About{"host": {host}}
	if _, yes := s.opts.Faults.Strike(fault.DownloadCut, "download/"+name, about); yes {
		say("Connection closed at byte %d. Retrying.", len(data)/2)
		say("Giving up.")

		return nil, errors.New(taskError("download", ""))
	}
	if _, yes := s.opts.Faults.Strike(fault.WrongChecksum, "download/"+name, about); yes && len(data) > 0 {
		data = slices.Clone(data)
		for i := range data {
			data[i] ^= 0xff
		}
	}

	return data, nil
}

// full reports whether nothing more fits on a storage.
func (s *Site) full(host string, d StorageDef) bool {
	_, yes := s.opts.Faults.Holds(fault.DatastoreFull, fault.About{"host": {host}, "storage": {d.ID}})

	return yes
}

// noSpace returns how making a disk fails on a full storage.
func noSpace(d StorageDef, disk string) error {
	if d.fileBased() {
		return fmt.Errorf("unable to create image: qemu-img: %s/images/%s: Could not resize file: No space left on device", d.path(), disk)
	}

	return fmt.Errorf("lvcreate 'pve/%s' error:   Cannot create new thin volume, "+ // LVM's own words
		"free space in thin pool pve/data reached threshold.", disk)
}
