// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package versions

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/Masterminds/semver/v3"
	"github.com/siderolabs/talos/pkg/machinery/config"
)

// Contract names the Talos minor version whose forms of configuration a cluster keeps. It
// is pinned when a cluster is created, so that a newer program writes the same forms.
type Contract struct{ Major, Minor int }

var (
	// Oldest is the first contract that configurations can be written for.
	Oldest = Contract{Major: 1, Minor: 10}
	// Newest is the last contract that configurations can be written for.
	Newest = Contract{Major: 1, Minor: 14}
)

var contractForm = regexp.MustCompile(`^v?([0-9]+)\.([0-9]+)$`)

// ParseContract reads "v1.12" or "1.12".
func ParseContract(text string) (Contract, error) {
	m := contractForm.FindStringSubmatch(text)
	if m == nil {
		return Contract{}, fmt.Errorf("%q is not a contract: write a Talos minor version, such as %q", text, Newest)
	}
	major, errMajor := strconv.Atoi(m[1])
	minor, errMinor := strconv.Atoi(m[2])
	if errMajor != nil || errMinor != nil {
		return Contract{}, fmt.Errorf("%q is not a contract: write a Talos minor version, such as %q", text, Newest)
	}

	return Contract{Major: major, Minor: minor}, nil
}

// String returns "v1.12".
func (c Contract) String() string { return fmt.Sprintf("v%d.%d", c.Major, c.Minor) }

// NewerThan reports whether c comes after other.
func (c Contract) NewerThan(other Contract) bool {
	return c.Major > other.Major || c.Major == other.Major && c.Minor > other.Minor
}

// Supported returns nil when configurations can be written for c; else the error names the range.
func (c Contract) Supported() error {
	if Oldest.NewerThan(c) || c.NewerThan(Newest) {
		return fmt.Errorf("Talos %s is not supported: use a version from %s to %s", c, Oldest, Newest)
	}

	return nil
}

// UnderstoodBy returns nil when a node of version t accepts configurations of contract c.
func (c Contract) UnderstoodBy(t Talos) error {
	if c.NewerThan(t.Contract()) {
		return fmt.Errorf("contract %s is newer than Talos %s: upgrade every node first, then raise the contract", c, t)
	}

	return nil
}

// Contracts returns every supported contract, oldest first.
func Contracts() []Contract {
	var found []Contract
	for c := Oldest; !c.NewerThan(Newest); c.Minor++ {
		found = append(found, c)
	}

	return found
}

// First returns the first release of the contract's minor version.
func (c Contract) First() Talos {
	return Talos{version: semver.New(uint64(c.Major), uint64(c.Minor), 0, "", "")}
}

// Machinery returns the contract as the machinery knows it, which answers what forms it has.
func (c Contract) Machinery() *config.VersionContract {
	return &config.VersionContract{Major: c.Major, Minor: c.Minor}
}

// Sections returns the newest contract, not newer than c, whose settings of Kubernetes are sections of
// the machine configuration.
func (c Contract) Sections() *config.VersionContract {
	if c.KubernetesDocuments() {
		return config.TalosVersion1_13
	}

	return c.Machinery()
}

// NetworkDocuments reports whether hostname, links, VIP, resolvers, time servers and hosts are
// documents of their own; else they are fields of the machine configuration.
func (c Contract) NetworkDocuments() bool { return c.Machinery().MultidocNetworkConfigSupported() }

// RegistryDocuments reports whether registry mirrors, credentials and certificates are documents of
// their own: since the release that brought those of the network.
func (c Contract) RegistryDocuments() bool { return c.NetworkDocuments() }

// VolumeEncryption reports whether system volumes are encrypted by VolumeConfig documents; else by
// machine.systemDiskEncryption.
func (c Contract) VolumeEncryption() bool { return c.Machinery().VolumeConfigEncryptionSupported() }

// KubernetesDocuments reports whether Kubernetes, the installation, the resolver, the cluster's
// identity and the kernel's settings are documents of their own; else they are sections of the machine
// configuration.
func (c Contract) KubernetesDocuments() bool {
	return c.Machinery().MultidocKubernetesConfigSupported()
}
