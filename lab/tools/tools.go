// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package tools finds the programs that `make tools` builds beside each other in bin/.
package tools

import (
	"fmt"
	"os"
	"path/filepath"
)

// The programs, and the directories of chart repositories and of Flux's controllers.
const (
	Lab        = "lab"
	Kubernetes = "lab-kubernetes"
	Charts     = "charts"
	Flux       = "flux-controllers"
	Pulumi     = "pulumi"
)

// Dir names the directory that `make tools` fills. A variable names a single tool elsewhere: LAB_KUBERNETES
// is the path of lab-kubernetes, LAB_CHARTS that of charts, LAB_FLUX_CONTROLLERS that of flux-controllers.
type Dir string

// Beside returns the directory of the running program.
func Beside() (Dir, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding the lab's tools: %w", err)
	}
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}

	return Dir(filepath.Dir(self)), nil
}

// Above looks for the tools where somebody else's program keeps them: in $LAB_BIN, else in the directory bin of
// dir or of the nearest directory above it that has the tools. The error says what to do.
func Above(dir string) (Dir, error) {
	if own := os.Getenv("LAB_BIN"); own != "" {
		abs, err := filepath.Abs(own)
		if err != nil {
			return "", fmt.Errorf("LAB_BIN: %w", err)
		}

		return Dir(abs), nil
	}

	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("looking for the lab's tools: %w", err)
	}
	for at := dir; ; at = filepath.Dir(at) {
		bin := filepath.Join(at, "bin")
		if _, err := os.Stat(filepath.Join(bin, Kubernetes)); err == nil {
			return Dir(bin), nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("the lab's tools are in no bin directory at or above %s: run `make tools` in a checkout of talos-proxmox "+
				"and set LAB_BIN to the path of its bin directory", dir)
		}
	}
}

// Path returns where a tool is or would be.
func (d Dir) Path(name string) string {
	variables := map[string]string{Kubernetes: "LAB_KUBERNETES", Charts: "LAB_CHARTS", Flux: "LAB_FLUX_CONTROLLERS"}
	if own := os.Getenv(variables[name]); variables[name] != "" && own != "" {
		return own
	}

	return filepath.Join(string(d), name)
}

// Find returns the path of a tool that is there. The error says what to do.
func (d Dir) Find(name string) (string, error) {
	path := d.Path(name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is missing: run `make tools`", path)
	}

	return path, nil
}
