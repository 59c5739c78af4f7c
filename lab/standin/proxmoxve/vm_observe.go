// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmoxve

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// readVM finds the VM wherever it is, and what it is like.
func readVM(ctx context.Context, op *bridge.Op) (bridge.Tree, error) {
	a, err := apiOf(op)
	if err != nil {
		return nil, err
	}

	if len(op.State) == 0 { // an import names node/id, the state has the id
		var ok bool
		if _, op.ID, ok = strings.Cut(op.ID, "/"); !ok {
			return nil, fmt.Errorf("unexpected format of ID (%s), expected node/id", op.ID)
		}
	}
	id, err := strconv.Atoi(op.ID)
	if err != nil {
		return nil, fmt.Errorf("strconv.Atoi: parsing %q: invalid syntax", op.ID)
	}

	node, err := a.nodeOfVM(ctx, id)
	if err != nil || node == "" {
		return nil, err
	}

	m := machine{api: a, node: node, id: id}
	seen, err := m.observe(ctx, op, op.State)
	if errors.Is(err, errNotFound) {
		return nil, nil // gone
	}

	return merge(op.State, seen, bridge.Tree{"vmId": id, "nodeName": node}), err
}

// nodeOfVM returns "" when there is no such VM.
func (a *api) nodeOfVM(ctx context.Context, id int) (string, error) {
	var all []struct {
		Node string `json:"node"`
		VMID int    `json:"vmid"`
	}
	if err := a.do(ctx, "GET", "cluster/resources", map[string][]string{"type": {"vm"}}, &all); err != nil {
		return "", fmt.Errorf("error retrieving cluster resources: %w", err)
	}

	for _, v := range all {
		if v.VMID == id {
			return v.Node, nil
		}
	}

	return "", nil
}

// observe reads back what the API tells; base is what is known of the rest.
func (m machine) observe(ctx context.Context, op *bridge.Op, base bridge.Tree) (bridge.Tree, error) {
	config, err := m.config(ctx)
	if err != nil {
		return nil, err
	}

	status, err := m.status(ctx)
	if err != nil {
		return nil, err
	}

	out := bridge.Tree{
		"acpi": config["acpi"] != "0", "bios": or(config["bios"], "seabios"),
		"protection": config["protection"] == "1", "tabletDevice": config["tablet"] != "0",
		"scsiHardware":    or(config["scsihw"], "lsi"),
		"operatingSystem": bridge.Tree{"type": or(config["ostype"], "other")},
		"name":            config["name"],
	}
	if !base.Bool("template") {
		out["started"] = status == "running"
	}

	for path, key := range map[string]string{
		"description": "description", "machine": "machine", "keyboardLayout": "keyboard",
	} {
		if config[key] != "" || base.Has(path) {
			out[path] = config[key]
		}
	}
	if tags := sortedTags(strings.Split(config["tags"], ";")); len(tags) > 0 || base.Has("tags") {
		out["tags"] = inOrder(base.Strs("tags"), tags)
	}

	m.observeCPU(config, base, out)
	observeNetwork(config, base, out)
	observeDrives(config, base, out)
	m.observeAgent(ctx, op, config, base, out)

	return out, nil
}

func or(v, fallback string) string {
	if v == "" {
		return fallback
	}

	return v
}

// inOrder keeps the program's order where the same tags are there.
func inOrder(known, have []string) []string {
	sorted := sortedTags(known)
	if strings.Join(sorted, ";") == strings.Join(have, ";") {
		return known
	}

	return have
}

// over copies a block and sets fields of it.
func over(block bridge.Tree, fields bridge.Tree) bridge.Tree { return merge(block, fields) }

func (m machine) observeCPU(config vmConfig, base, out bridge.Tree) {
	out["cpu"] = over(base.Sub("cpu"), bridge.Tree{
		"cores": number(or(config["cores"], "1")), "sockets": number(or(config["sockets"], "1")),
		"type": or(firstOf(config["cpu"], "cputype"), "kvm64"), "numa": config["numa"] == "1",
		"units": number(or(config["cpuunits"], "1024")), "limit": number(or(config["cpulimit"], "0")),
	})
	out["memory"] = over(base.Sub("memory"), bridge.Tree{
		"dedicated": number(or(config["memory"], "512")), "floating": number(or(config["balloon"], "0")),
	})
	out["agent"] = over(base.Sub("agent"), bridge.Tree{
		"enabled": firstOf(config["agent"], "enabled") == "1",
	})
}

func observeNetwork(config vmConfig, base, out bridge.Tree) {
	known := base.List("networkDevices")
	devices := []bridge.Tree{}
	macs := []string{}

	for i := range maxNICs {
		text, ok := config[fmt.Sprintf("net%d", i)]
		if !ok {
			if i < len(known) && !known[i].Bool("enabled") {
				devices = append(devices, known[i])
			}
			continue
		}

		var was bridge.Tree
		if i < len(known) {
			was = known[i]
		}
		model, mac := nicModel(text)
		if same := was.Str("macAddress"); strings.EqualFold(same, mac) {
			mac = same
		}
		devices = append(devices, over(was, bridge.Tree{
			"model": model, "macAddress": mac, "bridge": optionOf(text, "bridge"), "enabled": true,
			"vlanId": number(or(optionOf(text, "tag"), "0")), "mtu": number(or(optionOf(text, "mtu"), "0")),
			"firewall": optionOf(text, "firewall") == "1", "queues": number(or(optionOf(text, "queues"), "0")),
		}))
		macs = append(macs, mac)
	}

	out["networkDevices"] = devices
	out["macAddresses"] = macs
}

// nicModel reads "virtio=AA:BB:…" or "model=virtio,macaddr=AA:BB:…".
func nicModel(text string) (model, mac string) {
	first, _, _ := strings.Cut(text, ",")
	key, value, _ := strings.Cut(first, "=")
	if key == "model" {
		return value, optionOf(text, "macaddr")
	}

	return key, value
}
