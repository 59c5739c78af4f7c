// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmox

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
	"github.com/talos-proxmox/talos-proxmox/lab/site/pve/schema"
)

var inPath = regexp.MustCompile(`\{([^}$]+)\}`)

// checkParameters refuses what the API description of the cluster's version refuses: parameters that it does not know,
// wrong types and formats, and calls without one that it requires.
func checkParameters(major int, pattern string, r *http.Request, form url.Values) error {
	if strings.HasSuffix(pattern, "/upload") { // its parameters are parts of the body
		return nil
	}
	d, err := schema.Load(major)
	if err != nil {
		return err
	}
	values, err := parameters(d, pattern, r, form)
	if err != nil {
		return err
	}

	return d.Parameters(called(pattern), values)
}

// called returns the call that a pattern of the lab serves.
func called(pattern string) string { return strings.TrimSuffix(pattern, "/{$}") }

// parameters returns those of the path and of the request under their names in the description.
func parameters(d *schema.Description, pattern string, r *http.Request, form url.Values) (map[string]any, error) {
	values := map[string]any{}
	ours := inPath.FindAllStringSubmatch(pattern, -1)
	for i, name := range d.PathNames(called(pattern)) {
		values[name] = r.PathValue(strings.TrimSuffix(ours[i][1], "..."))
	}
	for name, given := range form {
		var value any = given[0]
		if len(given) > 1 {
			list := make([]any, len(given))
			for i, one := range given {
				list[i] = one
			}
			value = list
		}
		if have, twice := values[name]; twice && fmt.Sprint(have) != fmt.Sprint(value) {
			return nil, pve.Invalid(name, "duplicate parameter (already defined in URI) with conflicting values!")
		}
		values[name] = value
	}

	return values, nil
}
