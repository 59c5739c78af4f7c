// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/internal/versions"
)

// PulumiVersions is the range of versions of the Pulumi CLI that clusters are safe with. Below it hooks that fail do
// not end a run, and hooks for errors are not called for every error.
const PulumiVersions = ">=" + versions.PulumiCLI

// checkEngine refuses engines that would skip the hooks on which a cluster's safety rests.
func checkEngine(ctx *pulumi.Context) error {
	if err := ctx.RequirePulumiVersion(PulumiVersions); err != nil {
		return fmt.Errorf("the Pulumi CLI is too old: %w", err)
	}

	return nil
}
