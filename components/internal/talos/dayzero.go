// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/stash"
	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
)

// certificatesKey holds the pod network's certificates among persisted values.
const certificatesKey = "certificates"

// persistedManifests returns the manifests with the certificates that were made at creation, so that every
// render is the same. The output resolves to []machineconfig.Manifest.
func persistedManifests(b *Build) (pulumi.Output, error) {
	in, checked := b.Checked.DayZero, b.Checked.Machines.Manifests
	if in.Certificates == nil {
		return pulumi.ToOutput(true).ApplyT(func(any) []machineconfig.Manifest { return checked }), nil
	}
	text, err := json.Marshal(in.Certificates)
	if err != nil {
		return nil, fmt.Errorf("storing the certificates of the pod network: %w", err)
	}
	stored, err := stash.Persist(b.Ctx, b.Name+"-cilium", pulumi.StringMap{certificatesKey: pulumi.String(text)}, pulumi.Parent(b.Parent))
	if err != nil {
		return nil, err
	}

	return stored.Value(certificatesKey).ApplyT(func(text string) ([]machineconfig.Manifest, error) {
		var certificates manifests.Certificates
		if err := json.Unmarshal([]byte(text), &certificates); err != nil {
			return nil, errors.New("the state holds no certificates of the pod network")
		}
		own := in
		own.Certificates = &certificates

		return manifests.DayZero(b.Ctx.Context(), own)
	}), nil
}
