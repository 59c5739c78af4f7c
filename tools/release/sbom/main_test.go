// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// TestBillOfMaterials writes the bill of this test's own binary, and reads it again.
func TestBillOfMaterials(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		if err := write(out, self, "sbom", "v1.2.3"); err != nil {
			t.Fatal(err)
		}
	}
	if first.String() != second.String() {
		t.Error("the same binary gives another text")
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(&first, cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if got := bom.Metadata.Component; got.Name != "sbom" || got.Version != "v1.2.3" {
		t.Errorf("the program is %v", got)
	}
	found := false
	for _, c := range *bom.Components {
		if c.Name == "github.com/CycloneDX/cyclonedx-go" {
			found = strings.HasPrefix(c.PackageURL, "pkg:golang/github.com/CycloneDX/cyclonedx-go@v") && len((*c.Hashes)[0].Value) == 64
		}
	}
	if !found {
		t.Error("the library is not among the components, or has no checksum")
	}
	if err := write(&second, "main_test.go", "sbom", "v1.2.3"); err == nil {
		t.Error("a text is no program")
	}
}
