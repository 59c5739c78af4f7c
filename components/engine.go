// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/internal/versions"
)

// PulumiVersions is the range of versions of the Pulumi CLI that clusters are safe with. Below it hooks that fail do
// not end a run, and hooks for errors are not called for every error.
const PulumiVersions = ">=" + versions.PulumiCLI

// checkEngine refuses engines and ways to run that would pass by what guards a cluster.
func checkEngine(ctx *pulumi.Context) error {
	if goesOn, _ := strconv.ParseBool(os.Getenv("PULUMI_CONTINUE_ON_ERROR")); goesOn {
		return errors.New("PULUMI_CONTINUE_ON_ERROR is set: Pulumi would delete VMs of nodes that could not be drained " +
			"and taken out of etcd; unset it, and do not use --continue-on-error")
	}
	if err := ctx.RequirePulumiVersion(PulumiVersions); err != nil {
		return fmt.Errorf("the Pulumi CLI is too old: %w", err)
	}

	return nil
}
