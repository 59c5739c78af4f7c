// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// certificatesKey holds the pod network's certificates among kept values.
const certificatesKey = "certificates"

// dayZero is what control planes apply at bootstrap, with certificates of which nobody has the keys
// where the pod network needs some: for the check before anything is registered.
func dayZero(ctx context.Context, in manifests.Input) (manifests.Input, []machineconfig.Manifest, error) {
	if in.Config.UsesCilium() {
		made, err := manifests.NewCertificates(spec.Or(in.Config.Cluster.Name, ""), time.Now())
		if err != nil {
			return in, nil, err //nolint:wrapcheck // says everything
		}
		in.Certificates = &made
	}
	list, err := manifests.DayZero(ctx, in)

	return in, list, err //nolint:wrapcheck // names the setting
}

// manifestsWithKeptCertificates are the manifests with the certificates that were made at creation,
// so that every render is the same. The output resolves to []machineconfig.Manifest.
func (c *TalosCluster) manifestsWithKeptCertificates(
	ctx *pulumi.Context, name string, in manifests.Input, checked []machineconfig.Manifest,
) (pulumi.Output, error) {
	if in.Certificates == nil {
		return pulumi.ToOutput(true).ApplyT(func(any) []machineconfig.Manifest { return checked }), nil
	}
	text, err := json.Marshal(in.Certificates)
	if err != nil {
		return nil, fmt.Errorf("keeping the certificates of the pod network: %w", err)
	}
	stored, err := keep(ctx, name+"-cilium", pulumi.StringMap{certificatesKey: pulumi.String(text)}, pulumi.Parent(c))
	if err != nil {
		return nil, err
	}

	return stored.value(certificatesKey).ApplyT(func(text string) ([]machineconfig.Manifest, error) {
		var kept manifests.Certificates
		if err := json.Unmarshal([]byte(text), &kept); err != nil {
			return nil, errors.New("the state holds no certificates of the pod network")
		}
		own := in
		own.Certificates = &kept

		return manifests.DayZero(ctx.Context(), own) //nolint:wrapcheck // names the setting
	}), nil
}
