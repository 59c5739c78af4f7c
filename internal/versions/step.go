// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package versions

import (
	"fmt"
)

// TalosStep returns nil when a node that runs from may be upgraded (or taken back) to to in one step;
// else the error says where to go first.
func TalosStep(from, to Talos) error {
	if from.Compare(to) == 0 {
		return nil
	}
	if err := to.Contract().Supported(); err != nil {
		return err
	}
	refusal := talosRefusal(from, to)
	if refusal == nil {
		return nil
	}
	direction := "upgraded"
	if to.Compare(from) < 0 {
		direction = "taken back"
	}
	if next, ok := nextTalos(from, to); ok {
		return fmt.Errorf("Talos %s cannot be %s to %s in one step: go to %s first", from, direction, to, next)
	}

	return fmt.Errorf("Talos %s cannot be %s to %s: %w", from, direction, to, refusal)
}

// talosRefusal asks the machinery's table.
func talosRefusal(from, to Talos) error {
	host, err := machineryTalos(from)
	if err != nil {
		return err
	}
	target, err := machineryTalos(to)
	if err != nil {
		return err
	}

	return target.UpgradeableFrom(host)
}

// nextTalos returns the minor version nearest to the goal that from may step to.
func nextTalos(from, to Talos) (Contract, bool) {
	goal, here := to.Contract(), from.Contract()
	step := -1
	if here.NewerThan(goal) {
		step = 1
	}
	for c := goal; c != here; c.Minor += step {
		if c.Major != here.Major || c.Minor < 0 || c.Minor > here.Minor+newestKubernetesMinor {
			break
		}
		candidate, err := ParseTalos(fmt.Sprintf("v%d.%d.0", c.Major, c.Minor))
		if err == nil && c != goal && talosRefusal(from, candidate) == nil {
			return c, true
		}
	}

	return Contract{}, false
}

// KubernetesStep returns nil when a cluster of version from may go to to in one step: any patch of the
// same minor version, or the next minor version. Else the error says where to go first.
func KubernetesStep(from, to Kubernetes) error {
	a, b := from.version, to.version
	switch {
	case a.Major() != b.Major():
		return fmt.Errorf("Kubernetes %s cannot go to %s: the major version differs", from, to)
	case b.Minor() < a.Minor():
		return fmt.Errorf("Kubernetes %s cannot go back to %s: only to another patch of %s", from, to, from.Minor())
	case b.Minor() > a.Minor()+1:
		return fmt.Errorf("Kubernetes %s cannot skip to %s: go to v%d.%d first", from, to, a.Major(), a.Minor()+1)
	}

	return nil
}

// KubeletSkew returns nil when a kubelet may join an API server: not newer, and at most three minor
// versions older.
func KubeletSkew(apiServer, kubelet Kubernetes) error {
	a, k := apiServer.version, kubelet.version
	switch {
	case a.Major() != k.Major():
		return fmt.Errorf("kubelet %s and API server %s differ in the major version", kubelet, apiServer)
	case k.Minor() > a.Minor():
		return fmt.Errorf("kubelet %s is newer than API server %s: upgrade the API server first", kubelet, apiServer)
	case k.Minor()+3 < a.Minor():
		return fmt.Errorf("kubelet %s is more than three minor versions older than API server %s", kubelet, apiServer)
	}

	return nil
}
