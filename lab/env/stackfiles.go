// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package env

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// StackFiles remembers the stack files of a project as they were before a command ran.
type StackFiles struct {
	dir    string
	named  []string
	before map[string][]byte
}

// saltKey is what Pulumi adds to a stack file when it meets a passphrase for the first time.
const saltKey = "encryptionsalt:"

// RememberStackFiles reads the stack files in dir, and those that a command names with --config-file.
func RememberStackFiles(dir string, command []string) StackFiles {
	s := StackFiles{dir: dir, named: namedFiles(dir, command), before: map[string][]byte{}}
	for _, path := range s.paths() {
		if content, err := os.ReadFile(path); err == nil {
			s.before[path] = content
		}
	}

	return s
}

// namedFiles returns the files that a command run in dir names with --config-file.
func namedFiles(dir string, command []string) []string {
	const flag = "--config-file"
	var files []string
	for i, word := range command {
		path, joined := strings.CutPrefix(word, flag+"=")
		switch {
		case joined:
		case word == flag && i+1 < len(command):
			path = command[i+1]
		default:
			continue
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		files = append(files, path)
	}

	return files
}

func (s StackFiles) paths() []string {
	// The pattern is a constant and well formed, the only way in which Glob fails.
	paths, _ := filepath.Glob(filepath.Join(s.dir, "Pulumi.*.yaml"))

	return append(paths, s.named...)
}

// ForgetSalt takes the salt of the lab's passphrase out of stack files that had none: the lab's state
// keeps it, and in the file it would make the stack ask for the lab's passphrase everywhere else. A
// file with secure values needs it and keeps it. Pulumi writes the whole file to add that line, with its
// own quotes: a file that says what it said before gets its text back.
func (s StackFiles) ForgetSalt() {
	for _, path := range s.paths() {
		after, err := os.ReadFile(path)
		before, existed := s.before[path]
		if err != nil || bytes.Equal(before, after) || hasSalt(before) || bytes.Contains(after, []byte("secure:")) {
			continue
		}

		without := withoutSalt(after)
		if existed && sameYAML(without, before) {
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

// sameYAML reports whether two texts say the same.
func sameYAML(a, b []byte) bool {
	var x, y any

	return yaml.Unmarshal(a, &x) == nil && yaml.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
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
