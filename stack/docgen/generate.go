// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package docgen

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/spec"
	"github.com/talos-proxmox/talos-proxmox/stack"
)

// The generated files, relative to the repository.
const (
	PagePath     = "docs/reference/stack.md"
	VersionsPath = "docs/versions.md"
	SchemaPath   = "schema/stack.schema.json"
)

// generator holds what is common to one run.
type generator struct {
	comments    comments
	definitions object
	order       []reflect.Type
}

// Generate returns the contents of the generated files, by path relative to the repository root.
func Generate(root string) (map[string][]byte, error) {
	found, err := parseComments(filepath.Join(root, "spec"), filepath.Join(root, "stack"))
	if err != nil {
		return nil, err
	}
	g := &generator{comments: found}
	if missing := g.undocumented(); len(missing) > 0 {
		return nil, fmt.Errorf("fields without a comment: %s", strings.Join(missing, ", "))
	}
	schema, err := g.schema()
	if err != nil {
		return nil, fmt.Errorf("writing the schema: %w", err)
	}

	return map[string][]byte{
		PagePath: g.page(), VersionsPath: versionsPage(), SchemaPath: schema,
	}, nil
}

// undocumented returns fields that have no comment.
func (g *generator) undocumented() []string {
	var missing []string
	for _, k := range spec.KeysOf(reflect.TypeFor[stack.File](), "") {
		if g.comments.fields[k.Owner.Name()+"."+k.Field] == "" {
			missing = append(missing, k.Owner.Name()+"."+k.Field)
		}
	}

	return missing
}

// Stale returns the generated files under root that differ from what the types say now.
func Stale(root string) ([]string, error) {
	files, err := Generate(root)
	if err != nil {
		return nil, err
	}
	var stale []string
	for _, path := range []string{PagePath, VersionsPath, SchemaPath} {
		now, err := os.ReadFile(filepath.Join(root, path))
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		if !bytes.Equal(now, files[path]) {
			stale = append(stale, path)
		}
	}

	return stale, nil
}

// Write writes the generated files under root.
func Write(root string) error {
	files, err := Generate(root)
	if err != nil {
		return err
	}
	for path, contents := range files {
		full := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(full, contents, 0o644); err != nil {
			return err
		}
	}

	return nil
}
