// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kube

import (
	"errors"
	"fmt"
	"os"
	"slices"
)

func (c Config) validate() error {
	for _, field := range []struct {
		name  string
		empty bool
	}{
		{"Name", c.Name == ""},
		{"Dir", c.Dir == ""},
		{"Binary", c.Binary == ""},
		{"CACert", len(c.CACert) == 0},
		{"CAKey", len(c.CAKey) == 0},
		{"AggregatorCACert", len(c.AggregatorCACert) == 0},
		{"AggregatorCAKey", len(c.AggregatorCAKey) == 0},
		{"ServiceAccountKey", len(c.ServiceAccountKey) == 0},
	} {
		if field.empty {
			return fmt.Errorf("%s is empty", field.name)
		}
	}

	if _, err := os.Stat(c.Binary); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is missing: run `make tools`", binaryName(c.Binary))
	}
	for name := range c.APIServerArgs {
		if slices.Contains(reservedArgs(), name) {
			return fmt.Errorf("API server argument %q is set by the cluster itself and cannot be changed", name)
		}
	}

	return nil
}

// binaryName shortens the path of the binary to what a reader of the README knows.
func binaryName(path string) string {
	const short = "bin/lab-kubernetes"
	if len(path) >= len(short) && path[len(path)-len(short):] == short {
		return short
	}

	return path
}

func (c Config) withDefaults() Config {
	if len(c.ServiceCIDRs) == 0 {
		c.ServiceCIDRs = []string{"10.96.0.0/12"}
	}
	if len(c.PodCIDRs) == 0 {
		c.PodCIDRs = []string{"10.244.0.0/16"}
	}
	if c.DNSDomain == "" {
		c.DNSDomain = "cluster.local"
	}

	return c
}
