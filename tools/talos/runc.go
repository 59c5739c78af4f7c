// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// runc stands in front of runc in the nodes. What cannot be had here is taken out of a container's configuration first, as runc would not start
// it: filters of system calls, for which it would be linked with a library of C, and lower OOM scores where none are allowed.
func runc(args []string) error {
	if i := slices.Index(args, "--bundle"); i > 0 && i+1 < len(args) {
		if err := lighten(filepath.Join(args[i+1], "config.json")); err != nil {
			return err
		}
	}

	return unix.Exec("/usr/libexec/runc", args, os.Environ())
}

func lighten(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	config := make(map[string]json.RawMessage)
	if err := json.Unmarshal(content, &config); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	err = without(config, "linux", "seccomp")
	if err == nil && !mayLowerOOMScores() {
		err = without(config, "process", "oomScoreAdj")
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if content, err = json.Marshal(config); err != nil {
		return err
	}

	return os.WriteFile(path, content, 0o600)
}

// without takes a key out of a part of a configuration.
func without(config map[string]json.RawMessage, part, key string) error {
	inner := make(map[string]json.RawMessage)
	err := json.Unmarshal(config[part], &inner)
	if err == nil {
		delete(inner, key)
		config[part], err = json.Marshal(inner)
	}

	return err
}
