// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package etcd

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"filippo.io/age"

	"github.com/talos-proxmox/talos-proxmox/internal/agekey"
)

// encrypted begins a file that age wrote.
const encrypted = "age-encryption.org/"

// compressed begins a file that zstd wrote.
const compressed = "\x28\xb5\x2f\xfd"

// openSnapshot returns what is in the file of a snapshot. One that is encrypted, as scheduled backups are, is opened with
// the age identity in the file keyFile.
func openSnapshot(path, keyFile string, file io.Reader) (io.Reader, error) {
	content, err := peeked(file)
	if err != nil {
		return nil, fmt.Errorf("%s is no snapshot: it is empty", filepath.Base(path))
	}
	start, _ := content.Peek(len(encrypted))
	switch {
	case !bytes.Equal(start, []byte(encrypted)) && keyFile == "":
		return plain(path, content)
	case !bytes.Equal(start, []byte(encrypted)):
		return nil, fmt.Errorf("%s is not encrypted with age: leave --age-key out", filepath.Base(path))
	case keyFile == "":
		return nil, fmt.Errorf("%s is encrypted: name the file with the age key that opens it, --age-key FILE", filepath.Base(path))
	}
	text, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the age key: %w", err)
	}
	identity, err := agekey.Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s %w", filepath.Base(keyFile), err)
	}
	opened, err := age.Decrypt(content, identity)
	if none := new(age.NoIdentityMatchError); errors.As(err, &none) {
		return nil, fmt.Errorf("%s is not encrypted for %s (%s)", filepath.Base(path), identity.Recipient(), filepath.Base(keyFile))
	}
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", filepath.Base(path), err)
	}
	// The first part is read before anybody is asked to start with it.
	inside, err := peeked(opened)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", filepath.Base(path), err)
	}

	return plain(path, inside)
}

// peeked returns a reader after it has read its first byte, and an error where there is none.
func peeked(r io.Reader) (*bufio.Reader, error) {
	b := bufio.NewReader(r)
	_, err := b.Peek(1)

	return b, err
}

// plain refuses what etcd does not read.
func plain(path string, content *bufio.Reader) (io.Reader, error) {
	if start, _ := content.Peek(len(compressed)); string(start) == compressed {
		return nil, fmt.Errorf("%s holds a compressed snapshot: take it apart with `zstd -d` first", filepath.Base(path))
	}

	return content, nil
}
