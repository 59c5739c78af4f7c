// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig

import (
	"fmt"

	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Input holds everything that machine configurations are rendered from, except the secrets.
type Input struct {
	// Config is the cluster, complete as [spec.Config.WithDefaults] returns it.
	Config spec.Config
	// Manifests are the control planes' inline manifests, applied in this order.
	Manifests []Manifest
	// Installer is the installer image of each node, by the node's name. A node that is not in it
	// gets Talos's plain installer of the cluster's version.
	Installer map[string]string
	// ReadFile reads a file relative to the project directory; needed where patches are files.
	ReadFile func(string) ([]byte, error)
}

// Manifest holds a YAML text of Kubernetes objects that Talos applies at bootstrap.
type Manifest struct {
	// Name is unique among the manifests.
	Name string
	// Contents is one or more YAML documents.
	Contents string
}

// contract returns the pinned contract, else the Talos version's own.
func (in Input) contract() (versions.Contract, error) {
	if in.Config.Talos.Contract != nil {
		return versions.ParseContract(*in.Config.Talos.Contract)
	}
	talos, err := versions.ParseTalos(spec.Value(in.Config.Talos.Version))
	if err != nil {
		return versions.Contract{}, err
	}

	return talos.Contract(), nil
}

// installer returns the node's installer image.
func (in Input) installer(node string) string {
	if image := in.Installer[node]; image != "" {
		return image
	}

	return fmt.Sprintf("ghcr.io/siderolabs/installer:%s", spec.Value(in.Config.Talos.Version))
}
