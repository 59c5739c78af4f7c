// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// config decodes the file that --config names. Paths in the arguments are taken relative to the folder
// of the file, which becomes the working directory.
type config struct {
	// Listen is where the API server listens, "127.0.0.1:0" for any free port.
	Listen string `json:"listen"`
	// Version is what /version reports, "v1.35.0"; an older minor is emulated.
	Version string `json:"version"`
	// Restore is a snapshot that replaces all data, "" for none.
	Restore string `json:"restore"`
	// APIServer, ControllerManager and Scheduler are the components' own flags.
	APIServer         []string `json:"apiServer"`
	ControllerManager []string `json:"controllerManager"`
	Scheduler         []string `json:"scheduler"`
}

func loadConfig(args []string) (*config, error) {
	flags := flag.NewFlagSet("control-plane", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	file := flags.String("config", "", "")

	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if *file == "" || flags.NArg() > 0 {
		return nil, fmt.Errorf("control-plane needs --config FILE and nothing else")
	}

	raw, err := os.ReadFile(*file)
	if err != nil {
		return nil, fmt.Errorf("reading the config: %w", err)
	}

	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()

	var c config
	if err := decoder.Decode(&c); err != nil {
		return nil, fmt.Errorf("reading %s: %w", *file, err)
	}
	// A Unix socket's path has to be short, and a relative one always is.
	if err := os.Chdir(filepath.Dir(*file)); err != nil {
		return nil, err
	}

	return &c, nil
}
