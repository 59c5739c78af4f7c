// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package schema judges calls and answers by the API descriptions of Proxmox VE 8 and 9: which parameters a call takes,
// their types and formats, and the words in which a wrong one is refused. It checks as PVE/JSONSchema.pm does.
package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/talos-proxmox/talos-proxmox/lab/recorded"
)

// Description holds the API description of one major version.
type Description struct {
	calls   map[string]method   // by method and path with "{}" for what varies
	formats map[string]property // named formats that are property strings, their fields in Properties
	indexes map[string]int      // the highest number of "scsi", "net" …
	models  map[string]bool
	flags   []string
	major   int
}

type method struct {
	path       string
	Parameters property `json:"parameters"`
	Returns    property `json:"returns"`
}

// property describes a value as PVE's schema does.
type property struct {
	Type                 types               `json:"type"`
	Optional             flag                `json:"optional"`
	Format               *format             `json:"format"`
	Pattern              string              `json:"pattern"`
	Enum                 []scalar            `json:"enum"`
	Minimum              *scalar             `json:"minimum"`
	Maximum              *scalar             `json:"maximum"`
	MinLength            *scalar             `json:"minLength"`
	MaxLength            *scalar             `json:"maxLength"`
	DefaultKey           flag                `json:"default_key"`
	Alias                string              `json:"alias"`
	KeyAlias             string              `json:"keyAlias"`
	Group                string              `json:"group"`
	Requires             json.RawMessage     `json:"requires"`
	Items                *property           `json:"items"`
	Properties           map[string]property `json:"properties"`
	AdditionalProperties json.RawMessage     `json:"additionalProperties"`
	OneOf                []property          `json:"oneOf"`
	AllOf                []property          `json:"allOf"`
	InstanceType         string              `json:"instance-type"`
	TypeProperty         string              `json:"type-property"`
	InstanceTypes        []string            `json:"instance-types"`
}

// flag reads Perl's booleans.
type flag bool

func (f *flag) UnmarshalJSON(data []byte) error {
	s := strings.Trim(string(data), `"`)
	*f = s != "0" && s != "" && s != "false" && s != "null"

	return nil
}

// scalar reads a number or a text as text.
type scalar string

func (s *scalar) UnmarshalJSON(data []byte) error {
	if text, err := strconv.Unquote(string(data)); err == nil {
		*s = scalar(text)
	} else {
		*s = scalar(data)
	}

	return nil
}

// types reads a type or several of which one has to fit.
type types []string

func (t *types) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte(`"`)) {
		var one string
		err := json.Unmarshal(data, &one)
		*t = types{one}

		return err
	}

	return json.Unmarshal(data, (*[]string)(t))
}

func (t types) has(name string) bool {
	for _, one := range t {
		if one == name {
			return true
		}
	}

	return false
}

// format reads the name of a format, or the fields of a property string.
type format struct {
	name   string
	fields map[string]property
}

func (f *format) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte(`"`)) {
		return json.Unmarshal(data, &f.name)
	}

	return json.Unmarshal(data, &f.fields)
}

var placeholder = regexp.MustCompile(`\{[^}]*\}`)

// Load returns the description of a major version, 8 or 9. It is read once.
func Load(major int) (*Description, error) {
	if major > 8 { // the version before
		return loadNine()
	}

	return loadEight()
}

var (
	loadEight = sync.OnceValues(func() (*Description, error) { return read(8) })
	loadNine  = sync.OnceValues(func() (*Description, error) { return read(9) })
)

func read(major int) (*Description, error) {
	data, err := recorded.ProxmoxAPI(major)
	if err != nil {
		return nil, err
	}
	var file struct {
		Calls     map[string]method              `json:"calls"`
		Formats   map[string]map[string]property `json:"formats"`
		Indexes   map[string]scalar              `json:"indexes"`
		CPUModels []string                       `json:"cpuModels"`
		CPUFlags  []string                       `json:"cpuFlags"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("reading the API description of Proxmox VE %d: %w", major, err)
	}
	d := &Description{
		calls: map[string]method{}, formats: map[string]property{}, indexes: map[string]int{},
		models: map[string]bool{}, flags: file.CPUFlags, major: major,
	}
	for path, m := range file.Calls {
		m.path = path
		d.calls[placeholder.ReplaceAllString(path, "{}")] = m
	}
	for name, fields := range file.Formats {
		d.formats[name] = property{Properties: fields}
	}
	for name, n := range file.Indexes {
		d.indexes[name], err = strconv.Atoi(string(n))
		if err != nil {
			return nil, fmt.Errorf("reading the API description of Proxmox VE %d: %s: %w", major, name, err)
		}
	}
	for _, name := range file.CPUModels {
		d.models[name] = true
	}

	return d, nil
}

// Knows reports whether the version has a call, "GET /nodes/{node}/qemu".
func (d *Description) Knows(call string) bool {
	_, ok := d.calls[placeholder.ReplaceAllString(call, "{}")]

	return ok
}

// PathNames returns the names of what varies in a call's path, in order: "node", "vmid".
func (d *Description) PathNames(call string) []string {
	var names []string
	for _, name := range placeholder.FindAllString(d.calls[placeholder.ReplaceAllString(call, "{}")].path, -1) {
		names = append(names, strings.Trim(name, "{}"))
	}

	return names
}

// field returns the schema of a name among properties, where "scsi[n]" stands for scsi0 to the last one there is.
func (d *Description) field(fields map[string]property, name string) (property, bool) {
	if p, ok := fields[name]; ok && !strings.HasSuffix(name, "[n]") {
		return p, true
	}
	base := strings.TrimRight(name, "0123456789")
	p, ok := fields[base+"[n]"]
	if !ok || base == name {
		return property{}, false
	}
	n, err := strconv.Atoi(name[len(base):])
	if err != nil || strconv.Itoa(n) != name[len(base):] || n > d.indexes[base] {
		return property{}, false
	}

	return p, true
}
