// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmox

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// UsersOf returns the VMs of some hosts that have a volume ("local:iso/talos.iso") in a drive, and those of all hosts where
// they share the datastore; none when the datastore of host does not hold it.
func (c *Client) UsersOf(ctx context.Context, volume, host string, hosts []string) ([]VM, error) {
	datastore, _, _ := strings.Cut(volume, ":")
	var files []struct {
		Volume string `json:"volid"`
	}
	path := fmt.Sprintf("/nodes/%s/storage/%s/content?content=iso", url.PathEscape(host), url.PathEscape(datastore))
	if err := c.call(ctx, http.MethodGet, path, nil, &files); err != nil {
		return nil, err
	}
	there := false
	for _, file := range files {
		there = there || file.Volume == volume
	}
	if !there {
		return nil, nil
	}
	var store struct {
		Shared int `json:"shared"`
	}
	path = fmt.Sprintf("/nodes/%s/storage/%s/status", url.PathEscape(host), url.PathEscape(datastore))
	if err := c.call(ctx, http.MethodGet, path, nil, &store); err != nil {
		return nil, err
	}
	if store.Shared != 0 {
		hosts = nil
	}

	return c.having(ctx, volume, hosts)
}

// having returns the VMs of some hosts, or of all where none is named, that have a volume in a drive.
func (c *Client) having(ctx context.Context, volume string, hosts []string) ([]VM, error) {
	var all []VM
	if err := c.call(ctx, http.MethodGet, "/cluster/resources?type=vm", nil, &all); err != nil {
		return nil, err
	}
	var users []VM
	for _, v := range all {
		if len(hosts) > 0 && !slices.Contains(hosts, v.Host) {
			continue
		}
		var config map[string]any
		err := c.call(ctx, http.MethodGet, v.path()+"/config", nil, &config)
		if err != nil && !gone(err) {
			return nil, err
		}
		for _, value := range config {
			text, _ := value.(string)
			if file, _, _ := strings.Cut(text, ","); file == volume {
				users = append(users, v)

				break
			}
		}
	}

	return users, nil
}
