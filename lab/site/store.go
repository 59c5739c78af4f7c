// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	stateFile    = "site.json"
	stateVersion = 1
)

// load reads the state of dir, or makes it from d when there is none.
func load(dir string, d Definition) (*state, error) {
	data, err := os.ReadFile(filepath.Join(dir, stateFile)) // G304: the site's own directory
	if errors.Is(err, fs.ErrNotExist) {
		st := &state{Version: stateVersion, OpenHosts: d.OpenHosts}
		for _, c := range d.Clusters {
			st.Clusters = append(st.Clusters, newCluster(c))
		}
		if len(st.Clusters) == 0 {
			return nil, errors.New("the site's definition has no cluster")
		}

		return st, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the site: %w", err)
	}

	var st state
	if err := json.Unmarshal(data, &st); err != nil {
		return nil, fmt.Errorf("reading the site in %s: %w; remove the directory to start anew", dir, err)
	}
	if st.Version != stateVersion {
		return nil, fmt.Errorf("the site in %s has version %d and this lab reads %d; remove the directory to start anew",
			dir, st.Version, stateVersion)
	}
	for _, c := range st.Clusters {
		c.fill()
	}

	return &st, nil
}

// save writes the state. The caller holds s.mu.
func (s *Site) save() error {
	data, err := json.MarshalIndent(s.state, "", " ")
	if err != nil {
		return fmt.Errorf("writing the site: %w", err)
	}

	return writeFile(filepath.Join(s.opts.Dir, stateFile), data)
}

// writeFile replaces a file at once: readers see the old one or the new one, also after a crash.
func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}

	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // nothing is left to remove once it is renamed

	if _, err := tmp.Write(data); err != nil {
		_ = tmp.Close()

		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := tmp.Close(); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}

	return nil
}
