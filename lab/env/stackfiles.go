// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package env

import (
	"bytes"
	"os"
	"path/filepath"
)

// StackFiles are the stack files of a project before a command ran, by path.
type StackFiles struct {
	dir    string
	before map[string][]byte
}

// saltKey is what Pulumi adds to a stack file when it meets a passphrase for the first time.
const saltKey = "encryptionsalt:"

// RememberStackFiles reads the stack files in dir.
func RememberStackFiles(dir string) StackFiles {
	s := StackFiles{dir: dir, before: map[string][]byte{}}
	for _, path := range s.paths() {
		if content, err := os.ReadFile(path); err == nil {
			s.before[path] = content
		}
	}

	return s
}

func (s StackFiles) paths() []string {
	// The pattern is a constant and well formed, the only way in which Glob fails.
	paths, _ := filepath.Glob(filepath.Join(s.dir, "Pulumi.*.yaml"))

	return paths
}

// ForgetSalt takes the salt of the lab's passphrase out of stack files that had none: the lab's state
// keeps it, and in the file it would make the stack ask for the lab's passphrase everywhere else. A
// file with secure values needs it and keeps it.
func (s StackFiles) ForgetSalt() {
	for _, path := range s.paths() {
		after, err := os.ReadFile(path)
		before, existed := s.before[path]
		if err != nil || bytes.Equal(before, after) || hasSalt(before) || bytes.Contains(after, []byte("secure:")) {
			continue
		}

		without := withoutSalt(after)
		if bytes.Equal(bytes.TrimSpace(without), bytes.TrimSpace(before)) {
			without = before
		}
		if !existed && len(bytes.TrimSpace(without)) == 0 {
			_ = os.Remove(path) // at worst a file with one line stays
			continue
		}
		if info, err := os.Stat(path); err == nil && !bytes.Equal(without, after) {
			_ = os.WriteFile(path, without, info.Mode().Perm()) // at worst the line stays
		}
	}
}

func hasSalt(content []byte) bool { return len(withoutSalt(content)) != len(content) }

func withoutSalt(content []byte) []byte {
	var kept []byte
	for line := range bytes.Lines(content) {
		if !bytes.HasPrefix(line, []byte(saltKey)) {
			kept = append(kept, line...)
		}
	}

	return kept
}
