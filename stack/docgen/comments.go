// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package docgen writes what the stack file's Go types say: the reference page, the JSON Schema for
// editors, and the keys that the Pulumi project declares.
package docgen

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
)

// comments are the doc comments of struct types and their fields, as one line each.
type comments struct {
	types  map[string]string
	fields map[string]string // "Node.Memory"
}

// parseComments reads the Go files of the directories.
func parseComments(dirs ...string) (comments, error) {
	c := comments{types: map[string]string{}, fields: map[string]string{}}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			return c, err
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return c, fmt.Errorf("reading comments: %w", err)
			}
			c.add(file)
		}
	}

	return c, nil
}

func (c comments) add(file *ast.File) {
	for _, d := range file.Decls {
		general, ok := d.(*ast.GenDecl)
		if !ok || general.Tok != token.TYPE {
			continue
		}
		for _, s := range general.Specs {
			t, ok := s.(*ast.TypeSpec)
			if !ok {
				continue
			}
			doc := t.Doc
			if doc == nil {
				doc = general.Doc
			}
			c.types[t.Name.Name] = oneLine(doc)
			body, ok := t.Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, f := range body.Fields.List {
				for _, name := range f.Names {
					c.fields[t.Name.Name+"."+name.Name] = oneLine(f.Doc)
				}
			}
		}
	}
}

func oneLine(doc *ast.CommentGroup) string {
	return strings.Join(strings.Fields(doc.Text()), " ")
}

// field is the comment of a field without the field's Go name, where it begins with a sentence about
// it: "Pool is the Proxmox resource pool." becomes "The Proxmox resource pool.", "Insecure turns it
// off." becomes "Turns it off.", and "Memory in MiB." stays.
func (c comments) field(owner reflect.Type, name string) string {
	text := c.fields[owner.Name()+"."+name]
	rest, ok := strings.CutPrefix(text, name+" ")
	if !ok {
		return text
	}
	word, after, _ := strings.Cut(rest, " ")
	switch {
	case word == "is" || word == "are":
		return strings.ToUpper(after[:1]) + after[1:]
	case strings.HasSuffix(word, "s") && word != "as" && word == strings.ToLower(word):
		return strings.ToUpper(rest[:1]) + rest[1:]
	default:
		return text
	}
}
