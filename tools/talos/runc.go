// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"encoding/json"
	"errors"
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
	err = errors.Join(without(config, "linux", "seccomp"), keepProc(config))
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

// keepProc gives a container in the node's own namespace of processes the node's own /proc: a kubelet sets the kernel's settings there,
// of which a new one would show the machine's.
func keepProc(config map[string]json.RawMessage) error {
	var linux struct {
		Namespaces []struct {
			Type string `json:"type"`
		} `json:"namespaces"`
	}
	var mounts []map[string]any
	if err := errors.Join(json.Unmarshal(config["linux"], &linux), json.Unmarshal(config["mounts"], &mounts)); err != nil {
		return err
	}
	for _, n := range linux.Namespaces {
		if n.Type == "pid" {
			return nil
		}
	}
	for _, m := range mounts {
		if m["destination"] == "/proc" {
			m["type"], m["source"], m["options"] = "bind", "/proc", []string{"rbind"}
		}
	}
	content, err := json.Marshal(mounts)
	config["mounts"] = content

	return err
}
