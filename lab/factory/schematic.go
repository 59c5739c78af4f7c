// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package factory

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/siderolabs/image-factory/pkg/schematic"
	"go.yaml.in/yaml/v3"
)

// Schematic decodes the factory's schematics, with the boot loader that its newer releases know. The order of the fields
// is the factory's: the id depends on it.
type Schematic struct {
	Overlay       schematic.Overlay `yaml:"overlay,omitempty"`
	Customization Customization     `yaml:"customization"`
}

// Customization holds what of an image is asked for.
type Customization struct {
	ExtraKernelArgs  []string                          `yaml:"extraKernelArgs,omitempty"`
	Meta             []schematic.MetaValue             `yaml:"meta,omitempty"`
	SystemExtensions schematic.SystemExtensions        `yaml:"systemExtensions,omitempty"`
	Bootloader       string                            `yaml:"bootloader,omitempty"`
	SecureBoot       schematic.SecureBootCustomization `yaml:"secureboot,omitempty"`
}

// bootloaders returns those that Talos's imager knows.
func bootloaders() []string { return []string{"", "none", "dual-boot", "sd-boot", "grub"} }

// parseSchematic reads a schematic as strictly as the factory, with the factory's words.
func parseSchematic(data []byte) (Schematic, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	var s Schematic
	if err := decoder.Decode(&s); err != nil {
		return s, errors.New(strings.ReplaceAll(err.Error(), "type factory.", "type schematic."))
	}
	if kind := s.Customization.Bootloader; !slices.Contains(bootloaders(), kind) {
		return s, fmt.Errorf("%s does not belong to BootloaderKind values", kind)
	}

	return s, nil
}

// id returns the SHA-256 of the canonical form.
func (s Schematic) id() (id string, canonical []byte, err error) {
	canonical, err = yaml.Marshal(s)
	if err != nil {
		return "", nil, fmt.Errorf("writing the schematic: %w", err)
	}
	sum := sha256.Sum256(canonical)

	return hex.EncodeToString(sum[:]), canonical, nil
}
