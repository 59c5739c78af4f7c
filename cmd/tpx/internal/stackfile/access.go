// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stackfile

import (
	"cmp"
	"os"
	"strconv"

	"github.com/talos-proxmox/talos-proxmox/internal/proxmox"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Access returns how the stack's provider reaches Proxmox VE: as the stack says it, else as the environment
// does.
func Access(p spec.Proxmox) proxmox.Access {
	env := func(name string) string { return os.Getenv("PROXMOX_VE_" + name) }
	insecure, _ := strconv.ParseBool(env("INSECURE"))
	if p.Insecure != nil {
		insecure = *p.Insecure
	}

	return proxmox.Access{
		Endpoint: cmp.Or(spec.Value(p.Endpoint), env("ENDPOINT")), Insecure: insecure,
		Token:    cmp.Or(spec.Value(p.APIToken).Reveal(), env("API_TOKEN")),
		Username: cmp.Or(spec.Value(p.Username), env("USERNAME")),
		Password: cmp.Or(spec.Value(p.Password).Reveal(), env("PASSWORD")),
	}
}
