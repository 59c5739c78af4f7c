// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmoxve

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// vmConfig holds a VM's configuration as the API returns it, every value as text.
type vmConfig map[string]string

func (m machine) config(ctx context.Context) (vmConfig, error) {
	var raw map[string]any
	if err := m.get(ctx, m.path("/config"), &raw); err != nil {
		return nil, fmt.Errorf("error retrieving VM %d: %w", m.id, err)
	}

	c := vmConfig{}
	for k, v := range raw {
		switch x := v.(type) {
		case string:
			c[k] = x
		case float64:
			c[k] = strconv.FormatFloat(x, 'f', -1, 64)
		case bool:
			c[k] = bit(x)
		}
	}

	return c, nil
}

// cloudInit returns the interface of the cloud-init drive, "" without one.
func (c vmConfig) cloudInit() string {
	for k, v := range c {
		if isDrive(k) && strings.Contains(v, "media=cdrom") && strings.Contains(volumeOf(v), "cloudinit") {
			return k
		}
	}

	return ""
}

func isDrive(key string) bool {
	for _, bus := range []string{"ide", "sata", "scsi", "virtio"} {
		if n, ok := strings.CutPrefix(key, bus); ok {
			if _, err := strconv.Atoi(n); err == nil {
				return true
			}
		}
	}

	return false
}

// volumeOf returns the volume of a drive: "local-lvm:vm-100-disk-0".
func volumeOf(drive string) string {
	first, _, _ := strings.Cut(drive, ",")
	return strings.TrimPrefix(first, "file=")
}

func datastoreOf(drive string) string {
	store, _, _ := strings.Cut(volumeOf(drive), ":")
	return store
}

// optionOf reads an option of a property string, "" without it.
func optionOf(text, key string) string {
	for part := range strings.SplitSeq(text, ",") {
		if v, ok := strings.CutPrefix(part, key+"="); ok {
			return v
		}
	}

	return ""
}

// firstOf reads the value that has no key: the "x86-64-v2" of a cpu.
func firstOf(text, key string) string {
	first, _, _ := strings.Cut(text, ",")
	if !strings.Contains(first, "=") {
		return first
	}

	return optionOf(text, key)
}

// sizeOf returns a drive's size in bytes.
func sizeOf(drive string) int64 {
	text := optionOf(drive, "size")
	unit := int64(1)
	for suffix, u := range map[string]int64{"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40} {
		if t, ok := strings.CutSuffix(text, suffix); ok {
			text, unit = t, u
		}
	}
	n, _ := strconv.ParseInt(text, 10, 64)

	return n * unit
}

func number(v any) int {
	switch n := v.(type) {
	case float64:
		return int(n)
	case string:
		i, _ := strconv.Atoi(n)
		return i
	}

	return 0
}

// merge lays trees over each other.
func merge(trees ...bridge.Tree) bridge.Tree {
	out := bridge.Tree{}
	for _, t := range trees {
		maps.Copy(out, t)
	}

	return out
}

// inBytes writes a size as the provider sends it: "8G" is "8589934592". What is no size stays.
func inBytes(size string) string {
	for i, unit := range []string{"K", "M", "G", "T"} {
		number, ok := strings.CutSuffix(size, unit)
		if n, err := strconv.ParseInt(number, 10, 64); ok && err == nil {
			return strconv.FormatInt(n<<(10*(i+1)), 10)
		}
	}

	return size
}
