// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Command encrypt does for tests what `sops encrypt --age RECIPIENT --encrypted-regex
// '^(data|stringData)$'` does for people, with the same library: YAML on standard input, the encrypted
// file on standard output.
package main

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/getsops/sops/v3"
	"github.com/getsops/sops/v3/aes"
	"github.com/getsops/sops/v3/age"
	"github.com/getsops/sops/v3/config"
	"github.com/getsops/sops/v3/stores/yaml"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "encrypt:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: encrypt AGE-RECIPIENT < plain.yaml > encrypted.yaml")
	}
	plain, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	store := yaml.NewStore(&config.YAMLStoreConfig{Indent: 4})
	branches, err := store.LoadPlainFile(plain)
	if err != nil {
		return fmt.Errorf("reading YAML: %w", err)
	}
	keys, err := age.MasterKeysFromRecipients(args[0])
	if err != nil {
		return fmt.Errorf("reading the recipient: %w", err)
	}
	dataKey := make([]byte, 32)
	if _, err := rand.Read(dataKey); err != nil {
		return err
	}
	group := sops.KeyGroup{}
	for _, key := range keys {
		if err := key.Encrypt(dataKey); err != nil {
			return fmt.Errorf("encrypting for the recipient: %w", err)
		}
		group = append(group, key)
	}
	tree := sops.Tree{Branches: branches, Metadata: sops.Metadata{
		KeyGroups: []sops.KeyGroup{group}, EncryptedRegex: "^(data|stringData)$", Version: "3.11.0", LastModified: time.Now().UTC(),
	}}
	cipher := aes.NewCipher()
	mac, err := tree.Encrypt(dataKey, cipher)
	if err != nil {
		return fmt.Errorf("encrypting: %w", err)
	}
	tree.Metadata.MessageAuthenticationCode, err = cipher.Encrypt(mac, dataKey, tree.Metadata.LastModified.Format(time.RFC3339))
	if err != nil {
		return fmt.Errorf("encrypting: %w", err)
	}
	out, err := store.EmitEncryptedFile(tree)
	if err != nil {
		return fmt.Errorf("writing YAML: %w", err)
	}
	_, err = os.Stdout.Write(out)

	return err
}
