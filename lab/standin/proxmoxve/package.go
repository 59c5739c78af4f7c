// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmoxve

import (
	"errors"

	sdk "github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
	"github.com/talos-proxmox/talos-proxmox/lab/standin/wire"
)

const pluginVersion = "6.18.1"

// Package returns the provider proxmoxve.
func Package() *bridge.Package {
	return &bridge.Package{
		Name: "proxmoxve", Version: pluginVersion,
		Config: sdk.ProviderArgs{},
		// What is in the block ssh is no secret to the provider: the program has to make it one.
		ConfigSecrets: []string{"apiToken", "authTicket", "csrfPreventionToken", "password"},
		Configure:     func(_ *wire.Conn, config bridge.Tree) (any, error) { return configure(config) },
		Resources: map[string]*bridge.Resource{
			"proxmoxve:VM/virtualMachine:VirtualMachine": virtualMachine(),
			"proxmoxve:Download/file:File":               downloadFile(),
			"proxmoxve:Storage/file:File":                storageFile(),
			"proxmoxve:HA/hAGroup:HAGroup":               haGroup(),
			"proxmoxve:HA/hAResource:HAResource":         haResource(),
			"proxmoxve:Hardware/mapping/pci:Pci":         pciMapping(),
			"proxmoxve:Hardware/mapping/usb:Usb":         usbMapping(),
			"proxmoxve:Permission/pool:Pool":             pool(),
		},
		Functions: functions(),
	}
}

func apiOf(op *bridge.Op) (*api, error) {
	a, ok := op.Client.(*api)
	if !ok {
		return nil, errors.New("the provider is not configured")
	}

	return a, nil
}
