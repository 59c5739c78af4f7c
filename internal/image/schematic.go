// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package image

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/siderolabs/image-factory/pkg/schematic"
	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Schematic holds what the Image Factory builds images from.
type Schematic struct {
	// ID the factory knows it by: the SHA-256 of YAML.
	ID string
	// YAML in the factory's canonical form.
	YAML string
	// Extensions in full, "siderolabs/qemu-guest-agent".
	Extensions []string
}

// document holds the factory's schematic with the boot loader, which the factory's own data model has
// in releases that would force another version of Talos's packages on us. The order of the fields is
// the factory's: the id depends on it.
type document struct {
	Overlay       schematic.Overlay `yaml:"overlay,omitempty"`
	Customization customization     `yaml:"customization"`
}

type customization struct {
	ExtraKernelArgs  []string                          `yaml:"extraKernelArgs,omitempty"`
	Meta             []schematic.MetaValue             `yaml:"meta,omitempty"`
	SystemExtensions schematic.SystemExtensions        `yaml:"systemExtensions,omitempty"`
	Bootloader       string                            `yaml:"bootloader,omitempty"`
	SecureBoot       schematic.SecureBootCustomization `yaml:"secureboot,omitempty"`
}

// Resolve computes the schematic of an image for a Talos version. readFile reads the schematic file,
// when the image names one, by its path relative to the project directory. What the rules report
// is an error here.
func Resolve(img spec.Image, talosVersion string, readFile func(string) ([]byte, error)) (Schematic, error) {
	var doc document
	var err error
	if img.SchematicFile != nil {
		doc, err = readDocument(*img.SchematicFile, readFile)
	} else {
		doc, err = buildDocument(img, talosVersion)
	}
	if err != nil {
		return Schematic{}, err
	}

	text, err := yaml.Marshal(doc)
	if err != nil {
		return Schematic{}, fmt.Errorf("writing the schematic: %w", err)
	}
	sum := sha256.Sum256(text)

	return Schematic{
		ID:         hex.EncodeToString(sum[:]),
		YAML:       string(text),
		Extensions: slices.Clone(doc.Customization.SystemExtensions.OfficialExtensions),
	}, nil
}

func readDocument(path string, readFile func(string) ([]byte, error)) (document, error) {
	if readFile == nil {
		return document{}, fmt.Errorf("reading schematic file %q: files cannot be read here", path)
	}
	text, err := readFile(path)
	if err != nil {
		return document{}, fmt.Errorf("reading schematic file %q: %w", path, err)
	}

	var doc document
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&doc); err != nil {
		return document{}, fmt.Errorf("decoding schematic file %q: %w", path, err)
	}

	return doc, nil
}

func buildDocument(img spec.Image, talosVersion string) (document, error) {
	var doc document
	c := &doc.Customization
	for _, name := range img.Extensions {
		full, err := Extension(name, talosVersion)
		if err != nil {
			return document{}, err
		}
		c.SystemExtensions.OfficialExtensions = append(c.SystemExtensions.OfficialExtensions, full)
	}
	c.ExtraKernelArgs = slices.Clone(img.KernelArgs)

	for key, value := range img.Meta {
		number, err := MetaKey(key)
		if err != nil {
			return document{}, err
		}
		c.Meta = append(c.Meta, schematic.MetaValue{Key: number, Value: value})
	}
	slices.SortFunc(c.Meta, func(a, b schematic.MetaValue) int { return int(a.Key) - int(b.Key) })

	if loader := spec.Value(img.Bootloader); loader != "" && loader != AutoBootloader {
		c.Bootloader = loader
	}
	if img.Overlay != nil {
		doc.Overlay = schematic.Overlay{Name: img.Overlay.Name, Image: img.Overlay.Image}
		for _, key := range slices.Sorted(maps.Keys(img.Overlay.Options)) {
			if doc.Overlay.Options == nil {
				doc.Overlay.Options = map[string]any{}
			}
			doc.Overlay.Options[key] = img.Overlay.Options[key]
		}
	}

	return doc, nil
}

// AutoBootloader leaves the choice to the factory, which then has no word of it in the schematic.
const AutoBootloader = "auto"

// MetaKey reads a META key: "10", or "0xa".
func MetaKey(text string) (uint8, error) {
	number, err := strconv.ParseUint(strings.ToLower(text), 0, 8)
	if err != nil {
		return 0, fmt.Errorf(`%q is no META key: write a number up to 255, such as "10" or "0x0a"`, text)
	}

	return uint8(number), nil
}
