// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package engine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The flag that names another stack file, and the variable that stands for it.
const (
	configFileFlag     = "--config-file"
	configFileVariable = "PULUMI_OPTION_CONFIG_FILE"
)

// process describes a running process.
type process struct {
	parent int
	args   []string
	dir    string
}

// ConfigFile returns the stack file that Pulumi's command line names, or "" where it names none, so that Pulumi reads the
// stack's own. It reports false where the command line cannot be read: the engine hands over what a file says, and not
// which one it was. lookup is [os.Getenv].
func ConfigFile(lookup func(name string) string) (string, bool) {
	return configFile(lookup, os.Getppid(), inspect)
}

// configFile looks for the engine's process among those above the program. The engine starts the language host with its
// address as an argument, perhaps through a wrapper: its own process is the first one above that has no such argument.
func configFile(lookup func(string) string, pid int, inspect func(pid int) (process, bool)) (string, bool) {
	address := lookup(addressVariable)
	if address == "" {
		return "", false
	}
	below := false
	for pid > 1 {
		p, ok := inspect(pid)
		if !ok || len(p.args) == 0 {
			return "", false
		}
		switch isHost := slices.Contains(p.args, address); {
		case isHost:
			below = true
		case below && strings.Contains(filepath.Base(p.args[0]), "pulumi"):
			return namedFile(p, lookup(configFileVariable)), true
		case below:
			return "", false // another program that runs an engine, whose flags nobody knows
		}
		pid = p.parent
	}

	return "", false
}

// namedFile returns the file that a command line of Pulumi's names; otherwise is the file that the environment names.
func namedFile(p process, otherwise string) string {
	file := otherwise
	for i, arg := range p.args {
		if value, ok := strings.CutPrefix(arg, configFileFlag+"="); ok {
			file = value
		} else if arg == configFileFlag && i+1 < len(p.args) {
			file = p.args[i+1]
		}
	}
	if file == "" || filepath.IsAbs(file) {
		return file
	}

	return filepath.Join(p.dir, file)
}
