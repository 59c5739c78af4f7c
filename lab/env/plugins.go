// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package env

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Choice says who does the providers' work: one of the constants, or the names of the genuine ones,
// "proxmoxve,talos", beside which stand-ins play the others.
type Choice string

// The choices.
const (
	Auto    Choice = "auto"    // the genuine plugins where all of them are installed, else the stand-ins
	Standin Choice = "standin" // the stand-ins
	Real    Choice = "real"    // the genuine plugins; an error says which are not installed
)

// Check refuses what is no choice.
func (c Choice) Check() error {
	if slices.Contains([]Choice{Auto, Standin, Real}, c) {
		return nil
	}
	all := versions()
	for _, name := range c.named() {
		if all[name] == "" {
			return fmt.Errorf("must be auto, standin, real or the names of the genuine ones (%s), got %q",
				strings.Join(slices.Sorted(maps.Keys(all)), ","), c)
		}
	}

	return nil
}

// named returns the providers of a choice by name.
func (c Choice) named() []string { return strings.Split(string(c), ",") }

// versions returns those of all plugins by name.
func versions() map[string]string {
	all := providers()
	maps.Copy(all, gitProviders())

	return all
}

// providers returns the plugins that the project uses, with the versions that it pins.
func providers() map[string]string {
	return map[string]string{"proxmoxve": "6.18.1", "talos": "0.7.1", "kubernetes": "4.33.0"}
}

// gitProviders returns the plugins that only a stack uses which registers its deploy key, with the versions
// that the project pins. Each that is not installed is stood in for by itself.
func gitProviders() map[string]string {
	return map[string]string{"github": "6.12.1", "gitlab": "9.5.0", "command": "1.1.3"}
}

// genuine reports whether the genuine plugins do the work.
func (c Choice) genuine(e Environment) (bool, error) {
	if c == Standin {
		return false, nil
	}
	missing, home, err := e.missingPlugins(providers())
	if err != nil {
		return false, err
	}
	if len(missing) > 0 && c == Real {
		return false, fmt.Errorf("--providers real: %s not installed in %s; `pulumi plugin install resource NAME VERSION` does it",
			strings.Join(missing, ", "), home)
	}

	return len(missing) == 0, nil
}

// standins returns the names of the stand-ins to serve.
func (c Choice) standins(e Environment) ([]string, error) {
	if !slices.Contains([]Choice{Auto, Standin, Real}, c) {
		return c.besideNamed(e)
	}
	genuine, err := c.genuine(e)
	if err != nil {
		return nil, err
	}
	names := slices.Collect(maps.Keys(gitProviders()))
	switch {
	case !genuine:
		return slices.Concat(slices.Collect(maps.Keys(providers())), names), nil
	case c == Real:
		return nil, nil
	}
	missing, _, err := e.missingPlugins(gitProviders())
	for i, plugin := range missing {
		missing[i], _, _ = strings.Cut(plugin, " ")
	}

	return missing, err
}

// besideNamed returns the stand-ins beside the plugins that the choice names.
func (c Choice) besideNamed(e Environment) ([]string, error) {
	others, wanted := versions(), map[string]string{}
	for _, name := range c.named() {
		wanted[name] = others[name]
		delete(others, name)
	}
	missing, home, err := e.missingPlugins(wanted)
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("--providers %s: %s not installed in %s; `pulumi plugin install resource NAME VERSION` does it",
			c, strings.Join(missing, ", "), home)
	}

	return slices.Sorted(maps.Keys(others)), err
}

// missingPlugins returns those of the wanted ones that are not installed, and where they were looked for.
func (e Environment) missingPlugins(wanted map[string]string) (missing []string, home string, err error) {
	if home = e["PULUMI_HOME"]; home == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return nil, "", fmt.Errorf("looking for provider plugins: %w", err)
		}
		home = filepath.Join(user, ".pulumi")
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		version := wanted[name]
		if _, err := os.Stat(filepath.Join(home, "plugins", fmt.Sprintf("resource-%s-v%s", name, version))); err != nil {
			missing = append(missing, name+" "+version)
		}
	}

	return missing, home, nil
}
