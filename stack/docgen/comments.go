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
	"regexp"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// comments holds the doc comments of struct types and their fields, each as one line.
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

// field returns the comment of a field without the field's Go name, where it begins with a sentence about
// it: "Pool is the Proxmox resource pool." becomes "The Proxmox resource pool.", "Insecure turns it
// off." becomes "Turns it off.", and "Memory in MiB." stays. Other fields of the block are named by their keys.
func (c comments) field(owner reflect.Type, name string) string {
	text := c.fields[owner.Name()+"."+name]
	rest, ok := strings.CutPrefix(text, name+" ")
	if !ok {
		return keysFor(owner, name, text)
	}
	word, after, _ := strings.Cut(rest, " ")
	switch {
	case word == "is" || word == "are":
		return sentence(keysFor(owner, name, after))
	case word == "never" || strings.HasSuffix(word, "s") && word != "as" && word == strings.ToLower(word):
		return sentence(keysFor(owner, name, rest))
	default:
		return wordsOf(name) + " " + keysFor(owner, name, rest)
	}
}

// sentence writes the first letter of a text large, unless an address begins it.
func sentence(text string) string {
	if first, _, _ := strings.Cut(text, " "); strings.Contains(first, "://") {
		return text
	}

	return strings.ToUpper(text[:1]) + text[1:]
}

// keysFor replaces the Go names of a block's other fields by their keys. Abbreviations such as CPU stay, and
// so do names that are those of products.
func keysFor(owner reflect.Type, own, text string) string {
	for _, f := range spec.Fields(owner) {
		name := f.Struct.Name
		if name == own || name == strings.ToUpper(name) || productName.MatchString(name) {
			continue
		}
		text = regexp.MustCompile(`\b`+name+`\b`).ReplaceAllLiteralString(text, "`"+f.Name+"`")
	}

	return text
}

var productName = regexp.MustCompile(`^(Proxmox|Talos|Kubernetes|Cilium|CoreDNS|CRDs)$`)

// wordsOf writes a Go name as words: "SearchDomains" is "Search domains", "NodeIPSubnets" is "Node IP subnets".
func wordsOf(name string) string {
	name = strings.Replace(name, "GitHub", "Github", 1)
	words := humps.FindAllString(name, -1)
	for i, word := range words {
		if i > 0 && word[1:] == strings.ToLower(word[1:]) && len(word) > 1 {
			words[i] = strings.ToLower(word)
		}
	}

	return strings.Replace(strings.Join(words, " "), "Github", "GitHub", 1)
}

// humps are the words that a Go name is made of: a capitalized word, or an abbreviation.
var humps = regexp.MustCompile(`(?:API|ASN|CIDR|CLI|CPU|CRD|DNS|ID|IOPS|IP|MAC|NUMA|PCI|SAN|SSH|TLS|URL|VM)s?|[A-Z]+[a-z0-9]*`)
