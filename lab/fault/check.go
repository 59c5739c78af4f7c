// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package fault

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Known tells what exists under a selector: the hosts for "host". A selector of which it knows nothing
// is not checked.
type Known func(selector string) (names []string, checked bool)

// later is a key of every fault: its target does not exist yet.
const later = "later"

// check returns the settings with their defaults, or every problem at once.
func check(k Kind, with map[string]string, known Known) (Definition, map[string]string, error) {
	d, ok := definition(k)
	if !ok {
		var names []string
		for _, d := range Kinds() {
			names = append(names, string(d.Kind))
		}

		return d, nil, fmt.Errorf("there is no fault %q; there are %s", k, strings.Join(names, ", "))
	}

	var problems []error
	full := map[string]string{}
	for _, key := range d.Keys {
		if key.Default != "" {
			full[key.Name] = key.Default
		}
		if _, said := with[key.Name]; key.Required && !said {
			problems = append(problems, fmt.Errorf("%s: %s is required: %s", k, key.Name, key.Means))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(with)) {
		value := with[name]
		if name == later {
			if value != "yes" {
				problems = append(problems, fmt.Errorf("%s: %s: must be yes, got %q", k, name, value))
			}

			continue
		}
		key, ok := d.key(name)
		if !ok {
			problems = append(problems, fmt.Errorf("%s: there is no %q; there are %s", k, name, d.names()))

			continue
		}
		if err := key.accepts(value, known, with[later] == "yes"); err != nil {
			problems = append(problems, fmt.Errorf("%s: %s: %w", k, name, err))

			continue
		}
		full[name] = value
	}

	return d, full, errors.Join(problems...)
}

func (d Definition) names() string {
	var names []string
	for _, k := range d.Keys {
		names = append(names, k.Name)
	}

	return strings.Join(names, ", ")
}

func (k Key) accepts(value string, known Known, notYet bool) error {
	if value == "" {
		return errors.New("must not be empty")
	}
	if k.check != nil {
		return k.check(value)
	}
	if !k.Selects {
		return nil
	}
	if _, err := path.Match(value, ""); err != nil {
		return fmt.Errorf("%q is no pattern", value)
	}
	if !k.exists || notYet || known == nil {
		return nil
	}

	names, checked := known(k.Name)
	if !checked || slices.ContainsFunc(names, func(n string) bool { return matches(value, n) }) {
		return nil
	}
	if len(names) == 0 {
		return fmt.Errorf("%q fits nothing, since there is none yet; later=yes is for what does not exist yet", value)
	}

	return fmt.Errorf("%q fits none of %s; later=yes is for what does not exist yet", value, strings.Join(names, ", "))
}

// matches compares without regard to case, as names of hosts do. A lone * fits everything.
func matches(pattern, name string) bool {
	if pattern == "*" {
		return true
	}
	ok, err := path.Match(strings.ToLower(pattern), strings.ToLower(name))

	return err == nil && ok
}

func oneOf(values ...string) func(string) error {
	return func(value string) error {
		if !slices.Contains(values, value) {
			return fmt.Errorf("must be one of %s, got %q", strings.Join(values, ", "), value)
		}

		return nil
	}
}

func duration(value string) error {
	if _, err := time.ParseDuration(value); err != nil {
		return fmt.Errorf("must be a duration as in 30s, got %q", value)
	}

	return nil
}

func statusCode(value string) error {
	if n, err := strconv.Atoi(value); err != nil || n < 400 || n > 599 {
		return fmt.Errorf("must be an HTTP status from 400 to 599, got %q", value)
	}

	return nil
}

func positive(value string) error {
	if n, err := strconv.Atoi(value); err != nil || n < 1 {
		return fmt.Errorf("must be a whole number above 0, got %q", value)
	}

	return nil
}
