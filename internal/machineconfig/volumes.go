// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig

import (
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/config/types/block"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	blockresource "github.com/siderolabs/talos/pkg/machinery/resources/block"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// luks2 is the only encryption that Talos has.
const luks2 = "luks2"

// addVolumes encrypts and limits the system volumes.
func (r *builder) addVolumes() error {
	encryption := spec.Value(r.cfg.Talos.DiskEncryption)
	if !r.contract.VolumeEncryption() {
		r.addLegacyEncryption(encryption)
		encryption = spec.DiskEncryption{}
	}
	if encryption.State != nil {
		doc := volume(constants.StatePartitionLabel)
		doc.EncryptionSpec = encryptionSpec(*encryption.State)
		r.add(doc)
	}
	if encryption.Ephemeral == nil && r.cfg.Talos.EphemeralMaxSize == nil {
		return nil
	}
	doc := volume(constants.EphemeralPartitionLabel)
	if encryption.Ephemeral != nil {
		doc.EncryptionSpec = encryptionSpec(*encryption.Ephemeral)
	}
	if limit := r.cfg.Talos.EphemeralMaxSize; limit != nil {
		if err := doc.ProvisioningSpec.ProvisioningMaxSize.UnmarshalText(fmt.Appendf(nil, "%dGiB", *limit)); err != nil {
			return check.At("talos.ephemeralMaxSize", err)
		}
	}
	r.add(doc)

	return nil
}

// volume returns the document of a system volume.
func volume(name string) *block.VolumeConfigV1Alpha1 {
	doc := block.NewVolumeConfigV1Alpha1()
	doc.MetaName = name

	return doc
}

// encryptionSpec uses one key, in slot 0.
func encryptionSpec(e spec.Encryption) block.EncryptionSpec {
	key := block.EncryptionKey{KeySlot: 0}
	switch spec.Value(e.Key) {
	case "tpm":
		key.KeyTPM = &block.EncryptionKeyTPM{}
	case "kms":
		key.KeyKMS = &block.EncryptionKeyKMS{KMSEndpoint: spec.Value(e.KMSEndpoint)}
	case "static":
		key.KeyStatic = &block.EncryptionKeyStatic{KeyData: spec.Value(e.Passphrase).Reveal()}
	default:
		key.KeyNodeID = &block.EncryptionKeyNodeID{}
	}

	return block.EncryptionSpec{
		EncryptionProvider: blockresource.EncryptionProviderLUKS2,
		EncryptionKeys:     []block.EncryptionKey{key},
	}
}

// addLegacyEncryption writes the encryption into the machine configuration.
func (r *builder) addLegacyEncryption(e spec.DiskEncryption) {
	if e.State == nil && e.Ephemeral == nil {
		return
	}
	r.machine.MachineSystemDiskEncryption = &v1alpha1.SystemDiskEncryptionConfig{
		StatePartition: legacyEncryption(e.State), EphemeralPartition: legacyEncryption(e.Ephemeral),
	}
}

// legacyEncryption uses one key, in slot 0.
func legacyEncryption(e *spec.Encryption) *v1alpha1.EncryptionConfig {
	if e == nil {
		return nil
	}
	key := &v1alpha1.EncryptionKey{KeySlot: 0}
	switch spec.Value(e.Key) {
	case "tpm":
		key.KeyTPM = &v1alpha1.EncryptionKeyTPM{}
	case "kms":
		key.KeyKMS = &v1alpha1.EncryptionKeyKMS{KMSEndpoint: spec.Value(e.KMSEndpoint)}
	case "static":
		key.KeyStatic = &v1alpha1.EncryptionKeyStatic{KeyData: spec.Value(e.Passphrase).Reveal()}
	default:
		key.KeyNodeID = &v1alpha1.EncryptionKeyNodeID{}
	}

	return &v1alpha1.EncryptionConfig{EncryptionProvider: luks2, EncryptionKeys: []*v1alpha1.EncryptionKey{key}}
}
