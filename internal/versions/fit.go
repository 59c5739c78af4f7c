// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package versions

import (
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/compatibility"
)

// newestKubernetesMinor bounds the search for the range a Talos version supports; no release of
// Kubernetes 1.x is near it.
const newestKubernetesMinor = 99

// FitsTalos returns nil when Talos version t supports Kubernetes k; else the error names the range.
func (k Kubernetes) FitsTalos(t Talos) error {
	if err := t.Contract().Supported(); err != nil {
		return err
	}
	if supported(k, t) {
		return nil
	}
	oldest, newest := KubernetesRange(t)

	return fmt.Errorf("Talos %s supports Kubernetes %s to %s, not %s", t, oldest, newest, k)
}

// KubernetesRange returns the oldest and the newest Kubernetes minor version ("v1.30", "v1.35") that
// Talos version t supports; empty for a Talos version that is not supported itself.
func KubernetesRange(t Talos) (oldest, newest string) {
	for minor := range newestKubernetesMinor {
		k, err := ParseKubernetes(fmt.Sprintf("1.%d.0", minor))
		if err != nil || !supported(k, t) {
			continue
		}
		if oldest == "" {
			oldest = k.Minor()
		}
		newest = k.Minor()
	}

	return oldest, newest
}

// supported asks the machinery's table.
func supported(k Kubernetes, t Talos) bool { return k.RefusedBy(t) == nil }

// RefusedBy returns why Talos t would refuse Kubernetes k, in Talos's own words; nil when it takes it.
func (k Kubernetes) RefusedBy(t Talos) error {
	kubernetes, err := compatibility.ParseKubernetesVersion(k.Bare())
	if err != nil {
		return fmt.Errorf("reading Kubernetes %s: %w", k, err)
	}
	talos, err := machineryTalos(t)
	if err != nil {
		return err
	}

	return kubernetes.SupportedWith(talos) //nolint:wrapcheck // Talos's own words are what is asked for
}

// machineryTalos returns t as the machinery's table knows it.
func machineryTalos(t Talos) (*compatibility.TalosVersion, error) {
	v, err := compatibility.ParseTalosVersion(&machine.VersionInfo{Tag: t.String()})
	if err != nil {
		return nil, fmt.Errorf("reading Talos version %s: %w", t, err)
	}

	return v, nil
}
