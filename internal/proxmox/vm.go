// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmox

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// VM describes an existing virtual machine.
type VM struct {
	ID     int    `json:"vmid"`
	Name   string `json:"name"`
	Host   string `json:"node"`
	Status string `json:"status"`
	// Unfinished says that Proxmox VE itself was interrupted while it made the VM: it has neither a name nor
	// any device.
	Unfinished bool `json:"-"`
}

func (v VM) path() string { return fmt.Sprintf("/nodes/%s/qemu/%d", url.PathEscape(v.Host), v.ID) }

// Wanted describes the VM that a run is about to create.
type Wanted struct {
	// ID of the VM; 0 when Proxmox VE chooses it.
	ID int
	// Name of the VM.
	Name string
	// MACs are the addresses of its network cards.
	MACs []string
}

// Find returns a VM that is the wanted one already: by id, name and every MAC address. Others of the same
// id or name are somebody else's, but for one of that id which is not finished. It is nil when there is none.
func (c *Client) Find(ctx context.Context, w Wanted) (*VM, error) {
	var all []VM
	if err := c.call(ctx, http.MethodGet, "/cluster/resources?type=vm", nil, &all); err != nil {
		return nil, err
	}
	for _, v := range all {
		if (v.Name != w.Name && v.ID != w.ID) || (w.ID != 0 && v.ID != w.ID) {
			continue
		}
		macs, devices, err := c.devices(ctx, v)
		if err != nil {
			return nil, err
		}
		v.Unfinished = v.ID == w.ID && v.Name != w.Name && devices == 0 && v.Status == "stopped"
		if v.Unfinished || (v.Name == w.Name && sameMACs(macs, w.MACs)) {
			return &v, nil
		}
	}

	return nil, nil
}

var macForm = regexp.MustCompile(`(?i)\b[0-9a-f]{2}(:[0-9a-f]{2}){5}\b`)

// deviceKey matches settings that are devices: a disk, a card, a drive.
var deviceKey = regexp.MustCompile(`^(net|scsi|virtio|sata|ide|efidisk|tpmstate|hostpci|usb|unused)\d+$`)

// devices returns the MAC addresses in a VM's configuration, and how many devices it has.
func (c *Client) devices(ctx context.Context, v VM) (macs []string, count int, err error) {
	var config map[string]any
	if err := c.call(ctx, http.MethodGet, v.path()+"/config", nil, &config); err != nil {
		if gone(err) {
			return nil, 0, nil
		}

		return nil, 0, err
	}
	for key, value := range config {
		if !deviceKey.MatchString(key) {
			continue
		}
		count++
		if text, ok := value.(string); ok && strings.HasPrefix(key, "net") {
			macs = append(macs, macForm.FindString(text))
		}
	}

	return macs, count, nil
}

func sameMACs(have, want []string) bool {
	if len(have) != len(want) || len(want) == 0 {
		return false
	}
	seen := map[string]bool{}
	for _, mac := range have {
		seen[strings.ToUpper(mac)] = true
	}
	for _, mac := range want {
		if !seen[strings.ToUpper(mac)] {
			return false
		}
	}

	return true
}

// status returns "running" or "stopped"; empty when the VM is gone.
func (c *Client) status(ctx context.Context, v VM) (string, error) {
	var s struct {
		Status string `json:"status"`
	}
	err := c.call(ctx, http.MethodGet, v.path()+"/status/current", nil, &s)
	if gone(err) {
		return "", nil
	}

	return s.Status, err
}

func (c *Client) power(ctx context.Context, v VM, what string) error {
	return c.call(ctx, http.MethodPost, v.path()+"/status/"+what, url.Values{}, nil)
}

func (c *Client) remove(ctx context.Context, v VM) error {
	return c.call(ctx, http.MethodDelete, v.path()+"?purge=1&destroy-unreferenced-disks=1", nil, nil)
}

// Reboot shuts a VM down and starts it again, which brings its pending settings into force.
func (c *Client) Reboot(ctx context.Context, w Wanted) error {
	found, err := c.Find(ctx, w)
	if err != nil {
		return fmt.Errorf("rebooting VM %d: %w", w.ID, err)
	}
	if found == nil {
		return fmt.Errorf("rebooting VM %d: Proxmox VE has no VM %s with its network cards", w.ID, w.Name)
	}
	if err := c.power(ctx, *found, "reboot"); err != nil {
		return fmt.Errorf("rebooting VM %d: %w", w.ID, err)
	}

	return nil
}
