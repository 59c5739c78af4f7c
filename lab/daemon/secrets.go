// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package daemon

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/google/uuid"
)

// secrets hold what opens the site's Proxmox VE and its git hosts.
type secrets struct {
	Token    string `json:"token"`    // of root@pam
	Password string `json:"password"` // of root@pam
	GitToken string `json:"gitToken"` // of the one user of every git host
}

// loadSecrets reads them, or makes them once. The file's mode is 0600.
func loadSecrets(path string) (secrets, error) {
	var s secrets

	data, err := os.ReadFile(path) // G304: the site's own directory
	if errors.Is(err, fs.ErrNotExist) {
		s = secrets{Token: "root@pam!lab=" + uuid.NewString(), Password: rand.Text(), GitToken: rand.Text()}

		return s, writeSecrets(path, s)
	}
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		return s, fmt.Errorf("reading the lab's API token: %w", err)
	}
	if s.GitToken == "" { // a site from before there were git hosts
		s.GitToken = rand.Text()

		return s, writeSecrets(path, s)
	}

	return s, nil
}

func writeSecrets(path string, s secrets) error {
	data, err := json.Marshal(s)
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("making the lab's API token: %w", err)
	}

	return nil
}
