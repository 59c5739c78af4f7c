// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package git

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/crypto/ssh"
)

// Key describes a deploy key of a repository.
type Key struct {
	ID       int    `json:"id"`
	Title    string `json:"title"`
	Key      string `json:"key"` // as in authorized_keys
	ReadOnly bool   `json:"read_only"`
}

// keysFile lists a repository's deploy keys, in its directory.
const keysFile = "lab-keys.json"

var (
	errNoKey     = errors.New("key is invalid. You must supply a key in OpenSSH public key format")
	errKeyInUse  = errors.New("key is already in use")
	errTitleUsed = errors.New("Key title has been used") // as Gitea says it
)

// keysOf returns the deploy keys of the repository in dir.
func keysOf(dir string) ([]Key, error) {
	data, err := os.ReadFile(filepath.Join(dir, keysFile)) // G304: the site's own directory
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var keys []Key
	if err == nil {
		err = json.Unmarshal(data, &keys)
	}
	if err != nil {
		return nil, fmt.Errorf("reading deploy keys: %w", err)
	}

	return keys, nil
}

// changeKeys writes what change makes of a repository's keys.
func (h *Host) changeKeys(dir string, change func([]Key) ([]Key, error)) error {
	h.mu.Lock()
	defer h.mu.Unlock()

	keys, err := keysOf(dir)
	if err != nil {
		return err
	}
	if keys, err = change(keys); err != nil {
		return err
	}
	data, err := json.Marshal(keys)
	if err != nil {
		return fmt.Errorf("writing deploy keys: %w", err)
	}
	file := filepath.Join(dir, keysFile)
	if err := os.WriteFile(file+".new", data, 0o600); err != nil {
		return fmt.Errorf("writing deploy keys: %w", err)
	}

	return os.Rename(file+".new", file)
}

// addKey registers a key and gives it an id. Some hosts want titles that differ.
func (h *Host) addKey(dir string, key Key, uniqueTitles bool) (Key, error) {
	wanted, err := parseKey(key.Key)
	if err != nil {
		return key, errNoKey
	}
	err = h.changeKeys(dir, func(keys []Key) ([]Key, error) {
		key.ID = 1
		for _, have := range keys {
			if other, err := parseKey(have.Key); err == nil && bytes.Equal(other.Marshal(), wanted.Marshal()) {
				return nil, errKeyInUse
			}
			if uniqueTitles && have.Title == key.Title {
				return nil, errTitleUsed
			}
			key.ID = max(key.ID, have.ID+1)
		}

		return append(keys, key), nil
	})

	return key, err
}

// removeKey forgets a key; it reports whether there was one.
func (h *Host) removeKey(dir string, id int) (bool, error) {
	found := false
	err := h.changeKeys(dir, func(keys []Key) ([]Key, error) {
		return slices.DeleteFunc(keys, func(k Key) bool {
			found = found || k.ID == id

			return k.ID == id
		}), nil
	})

	return found, err
}

func parseKey(text string) (ssh.PublicKey, error) {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(text))

	return key, err
}

// keyAt finds the deploy key of a repository.
func keyAt(dir string, key []byte) (Key, bool) {
	keys, err := keysOf(dir)
	if err != nil {
		return Key{}, false
	}
	for _, have := range keys {
		if other, err := parseKey(have.Key); err == nil && bytes.Equal(other.Marshal(), key) {
			return have, true
		}
	}

	return Key{}, false
}

// isKnown reports whether any repository of a host has the key.
func (h *Host) isKnown(host string, key []byte) bool {
	known := false
	root := filepath.Join(h.dir, "repositories", canonical(host))
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && entry.Name() == keysFile {
			_, found := keyAt(filepath.Dir(path), key)
			known = known || found
		}

		return nil // what cannot be read has no keys
	})

	return known
}
