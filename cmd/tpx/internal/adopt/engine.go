// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package adopt

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/pulumi"
	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/stackfile"
	"github.com/talos-proxmox/talos-proxmox/internal/proxmox"
)

// engine runs Pulumi on one stack.
type engine struct {
	project pulumi.Project
	cli     pulumi.CLI
}

// plan returns what an `up` would do.
func (e engine) plan(ctx context.Context) (plan, error) {
	text, err := e.cli.Run(ctx, "preview", "--json", "--show-sames")
	if err != nil {
		return plan{}, err
	}

	return readPlan(text)
}

// access returns how the stack's provider reaches the API: from the stack's settings, else from the environment. Pulumi
// hides secrets in a preview; only the stack's configuration is printed with them.
func (e engine) access(ctx context.Context) (proxmox.Access, error) {
	source, err := stackfile.Open(ctx, e.project, e.cli)
	if err != nil {
		return proxmox.Access{}, err
	}

	return readAccess(source.Values[e.project.Name+":proxmox"])
}

// readAccess reads the stack's block `proxmox`, which may be empty; the environment gives the rest,
// by the names that the provider reads.
func readAccess(block string) (proxmox.Access, error) {
	var said struct {
		Endpoint string `json:"endpoint"`
		Token    string `json:"apiToken"`
		Username string `json:"username"`
		Password string `json:"password"`
		Insecure bool   `json:"insecure"`
	}
	if block != "" {
		if err := json.Unmarshal([]byte(block), &said); err != nil {
			return proxmox.Access{}, errors.New("reading the stack's configuration: proxmox is no block") // the cause may quote it
		}
	}

	return proxmox.Access{
		Endpoint: said.Endpoint, Insecure: said.Insecure, Token: said.Token, Username: said.Username, Password: said.Password,
	}.OrEnvironment(), nil
}

// with returns the engine whose providers find these credentials in their environment, so that they need
// not be written anywhere.
func (e engine) with(a proxmox.Access) engine {
	e.cli.Env = []string{
		"PROXMOX_VE_API_TOKEN=" + a.Token, "PROXMOX_VE_USERNAME=" + a.Username, "PROXMOX_VE_PASSWORD=" + a.Password,
	}
	e.cli.Env = slices.DeleteFunc(e.cli.Env, func(kv string) bool { return strings.HasSuffix(kv, "=") })

	return e
}
