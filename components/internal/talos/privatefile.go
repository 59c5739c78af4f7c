// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"fmt"
	"os"
	"path/filepath"
)

// writePrivate writes a file that only its owner can read, whole or not at all. An empty path writes
// nothing.
func writePrivate(path, content string) error {
	if path == "" {
		return nil
	}
	if old, err := os.ReadFile(path); err == nil && string(old) == content {
		return os.Chmod(path, 0o600)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}

	// os.CreateTemp makes files with mode 0600.
	part, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer os.Remove(part.Name()) //nolint:errcheck // gone after the rename
	if _, err := part.WriteString(content); err != nil {
		part.Close() //nolint:errcheck // the first error counts

		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := part.Close(); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Rename(part.Name(), path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}

	return nil
}
