// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stackfile

import (
	"github.com/talos-proxmox/talos-proxmox/internal/proxmox"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Access returns how the stack's provider reaches Proxmox VE: as the stack says it, else as the environment
// does.
func Access(p spec.Proxmox) proxmox.Access {
	insecure := proxmox.InsecureByEnvironment()
	if p.Insecure != nil {
		insecure = *p.Insecure
	}

	return proxmox.Access{
		Endpoint: spec.Value(p.Endpoint), Insecure: insecure, Token: spec.Value(p.APIToken).Reveal(),
		Username: spec.Value(p.Username), Password: spec.Value(p.Password).Reveal(),
	}.OrEnvironment()
}
