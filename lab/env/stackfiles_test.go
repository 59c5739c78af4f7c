// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package env

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheLabsSaltStaysOutOfStackFiles(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct{ before, after, want string }{
		"a salt that was added goes":    {"config:\n  a: b\n", "config:\n  a: b\nencryptionsalt: v1:x\n", "config:\n  a: b\n"},
		"a missing newline comes back":  {"config:\n  a: b", "config:\n  a: b\nencryptionsalt: v1:x\n", "config:\n  a: b"},
		"a user's own salt stays":       {"encryptionsalt: v1:y\n", "encryptionsalt: v1:y\nconfig:\n", "encryptionsalt: v1:y\nconfig:\n"},
		"secure values keep their salt": {"a: b\n", "a: {secure: v1:z}\nencryptionsalt: v1:x\n", "a: {secure: v1:z}\nencryptionsalt: v1:x\n"},
		"other quotes and other wrapping are taken back": {
			"# Why.\nconfig:\n  a: ssh://git@host/x.git\n  b: {c: [1, two]}\n",
			"# Why.\nconfig:\n  a: \"ssh://git@host/x.git\"\n  b:\n    c:\n      - 1\n      - two\nencryptionsalt: v1:x\n",
			"# Why.\nconfig:\n  a: ssh://git@host/x.git\n  b: {c: [1, two]}\n",
		},
		"other quotes alone are taken back": {"config:\n  a: ssh://x\n", "config:\n  a: \"ssh://x\"\n", "config:\n  a: ssh://x\n"},
		"what else the command wrote stays": {"a: b\n", "a: c\nencryptionsalt: v1:x\n", "a: c\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			dir := t.TempDir()
			path := filepath.Join(dir, "Pulumi.dev.yaml")
			require.NoError(t, os.WriteFile(path, []byte(c.before), 0o600))
			files := RememberStackFiles(dir, nil)
			require.NoError(t, os.WriteFile(path, []byte(c.after), 0o600))
			files.ForgetSalt()

			got, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, c.want, string(got))
		})
	}
}

func TestAStackFileOfNothingButTheSaltGoes(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	files := RememberStackFiles(dir, nil)
	path := filepath.Join(dir, "Pulumi.new.yaml")
	require.NoError(t, os.WriteFile(path, []byte("encryptionsalt: v1:x\n"), 0o600))
	files.ForgetSalt()
	assert.NoFileExists(t, path)
}

func TestTheLabsSaltStaysOutOfNamedFiles(t *testing.T) {
	t.Parallel()

	for name, command := range map[string]func(path string) []string{
		"two words": func(path string) []string { return []string{"pulumi", "preview", "--config-file", path} },
		"one word":  func(path string) []string { return []string{"pulumi", "preview", "--config-file=" + path, "--diff"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			dir, path := t.TempDir(), filepath.Join(t.TempDir(), "Pulumi.example.yaml")
			require.NoError(t, os.WriteFile(path, []byte("config:\n  a: b\n"), 0o600))
			files := RememberStackFiles(dir, command(path))
			require.NoError(t, os.WriteFile(path, []byte("config:\n  a: b\nencryptionsalt: v1:x\n"), 0o600))
			files.ForgetSalt()

			got, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, "config:\n  a: b\n", string(got))
		})
	}
}
