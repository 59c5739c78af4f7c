// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package schema

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

var (
	trueText  = regexp.MustCompile(`(?i)^(1|on|yes|true)$`)
	falseText = regexp.MustCompile(`(?i)^(0|off|no|false)$`)
	patterns  sync.Map
)

// boolean returns what a property string means by a boolean, and what is none as it is.
func boolean(s string) string {
	switch {
	case trueText.MatchString(s):
		return "1"
	case falseText.MatchString(s):
		return "0"
	}

	return s
}

// perl compiles a pattern as Perl prints it, anchored at both ends.
func perl(pattern string) *regexp.Regexp {
	if have, ok := patterns.Load(pattern); ok {
		return have.(*regexp.Regexp) //nolint:forcetypeassert // nothing else is stored
	}
	plain := strings.NewReplacer("(?^i:", "(?i:", "(?^u:", "(?:", "(?^:", "(?:", "(?>", "(?:", "{,", "{0,").Replace(pattern)
	compiled, err := regexp.Compile(`^(?:` + plain + `)\n?$`)
	if err != nil {
		compiled = regexp.MustCompile(``)
	}
	patterns.Store(pattern, compiled)

	return compiled
}

// parse reads a property string by its fields and checks it.
func (d *Description) parse(fields map[string]property, s, path string) (map[string]any, error) {
	values := map[string]any{}
	usedDefault := ""
	for _, part := range strings.Split(s, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, value, pair := strings.Cut(part, "=")
		switch {
		case pair && name != "" && value != "":
			if err := parsePair(fields, values, name, value); err != nil {
				return nil, err
			}
		case pair:
			return nil, errors.New("missing key in comma-separated list property")
		case usedDefault != "":
			return nil, fmt.Errorf("duplicate key in comma-separated list property: %s", usedDefault)
		default:
			usedDefault = defaultKey(fields)
			if usedDefault == "" {
				return nil, errors.New("value without key, but schema does not define a default key")
			}
			if values[usedDefault] != nil {
				return nil, fmt.Errorf("duplicate key in comma-separated list property: %s", usedDefault)
			}
			values[usedDefault] = fieldText(fields[usedDefault], part)
		}
	}
	found := problems{}
	d.checkObject(values, fields, []byte("0"), path, found)
	if len(found) == 0 {
		return values, nil
	}
	lines := []string{"format error"}
	for _, where := range slices.Sorted(maps.Keys(found)) {
		lines = append(lines, where+": "+found[where])
	}

	return nil, errors.New(strings.Join(lines, "\n"))
}

func parsePair(fields map[string]property, values map[string]any, name, value string) error {
	if values[name] != nil {
		return fmt.Errorf("duplicate key in comma-separated list property: %s", name)
	}
	p, known := fields[name]
	if p.Alias != "" {
		if p.KeyAlias != "" {
			if values[p.KeyAlias] != nil {
				return fmt.Errorf("key alias '%s' is already defined", p.KeyAlias)
			}
			values[p.KeyAlias] = name
		}
		name = p.Alias
		p, known = fields[name]
	}
	if !known { // it is refused with the rest
		p = property{}
	}
	values[name] = fieldText(p, value)

	return nil
}

func fieldText(p property, value string) string {
	if p.Type.has("boolean") {
		return boolean(value)
	}

	return value
}

func defaultKey(fields map[string]property) string {
	for name, p := range fields {
		if p.DefaultKey {
			return name
		}
	}

	return ""
}
