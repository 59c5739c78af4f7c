// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

const (
	// bootstrapSuffix ends the name of the Stash that is in the state once a cluster was bootstrapped.
	bootstrapSuffix = "-bootstrap"
	// stashToken is the type of Pulumi's Stash.
	stashToken = "pulumi:index:Stash"
)

// stateResource decodes what is read of a resource in the stack's last state.
type stateResource struct {
	Type    string `pulumi:"type"`
	Outputs struct {
		// Node is the address that a configuration was applied at.
		Node string `pulumi:"node"`
		// MachineID is that of a node's VM.
		MachineID string `pulumi:"machineId"`
	} `pulumi:"outputs"`
}

// inState reports whether the stack's last state has a resource of that type and name.
func inState(ctx *pulumi.Context, token, name string) (bool, error) {
	state, err := stateOf(ctx)
	for urn, r := range state {
		if r.Type == token && strings.HasSuffix(urn, token+"::"+name) {
			return true, nil
		}
	}

	return false, err
}

// stateOf returns the resources of the stack's last state, by URN.
func stateOf(ctx *pulumi.Context) (map[string]stateResource, error) {
	var errs []error
	// Backends in files that are older than projects know the short name only.
	for _, stack := range []string{ctx.Organization() + "/" + ctx.Project() + "/" + ctx.Stack(), ctx.Stack()} {
		var state struct {
			Outputs map[string]stateResource `pulumi:"outputs"`
		}
		err := ctx.Invoke("pulumi:pulumi:readStackResourceOutputs", pulumi.Map{"stackName": pulumi.String(stack)}, &state)
		if err == nil {
			return state.Outputs, nil
		}
		errs = append(errs, err)
	}

	return nil, fmt.Errorf("reading the stack's last state: %w", errors.Join(errs...))
}
