// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package image is the lab's form of a boot image: a few hundred bytes that say which Talos an ISO or
// a disk holds. The same settings always give the same bytes, so that checksums mean something.
package image

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// magic opens every image of the lab; the line feed ends the part that people read.
const magic = "lab boot image 1\n"

// ErrNotBootable is returned by [Decode] for bytes that are no boot image.
var ErrNotBootable = errors.New("not a boot image")

// Kinds of an [Image].
const (
	KindISO       = "iso"
	KindDisk      = "disk"
	KindInstaller = "installer"
)

// Image holds what an image file or a boot disk holds: which Talos, of which schematic.
type Image struct {
	Talos      string   `json:"talos"`     // "v1.12.4"
	Schematic  string   `json:"schematic"` // id
	Extensions []string `json:"extensions,omitempty"`
	KernelArgs []string `json:"kernelArgs,omitempty"`
	Platform   string   `json:"platform"` // "nocloud", "metal"
	Arch       string   `json:"arch"`     // "amd64", "arm64"
	SecureBoot bool     `json:"secureBoot,omitempty"`
	Kind       string   `json:"kind"` // "iso", "disk", "installer"
}

// Encode writes an image file.
func Encode(i Image) ([]byte, error) {
	body, err := json.Marshal(i)
	if err != nil {
		return nil, fmt.Errorf("encoding image %s: %w", i.Schematic, err)
	}

	return append([]byte(magic), append(body, '\n')...), nil
}

// Decode reads an image file. It fails with [ErrNotBootable] for anything that [Encode] did not write,
// compressed images among them: firmware does not decompress.
func Decode(data []byte) (*Image, error) {
	body, ok := bytes.CutPrefix(data, []byte(magic))
	if !ok {
		return nil, ErrNotBootable
	}

	var i Image
	if err := json.Unmarshal(body, &i); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotBootable, err)
	}

	return &i, nil
}
