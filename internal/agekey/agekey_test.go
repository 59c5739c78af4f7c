// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package agekey_test

import (
	"testing"

	"filippo.io/age"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/agekey"
)

func TestParse(t *testing.T) {
	t.Parallel()
	made, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	key := made.String()
	for name, c := range map[string]struct{ text, want string }{
		"the line":               {text: key},
		"a line with its end":    {text: " " + key + "\r\n"},
		"a file of age-keygen":   {text: "# created: 2026-01-01T00:00:00Z\n# public key: " + made.Recipient().String() + "\n" + key + "\n"},
		"the public half":        {made.Recipient().String(), "is not an age identity: give the line AGE-SECRET-KEY-1… that `age-keygen` prints"},
		"comments alone":         {"# nothing\n", "holds no age identity: give the line AGE-SECRET-KEY-1… that `age-keygen` prints"},
		"two keys":               {key + "\n" + key, "holds several age identities: keep the one that secrets are encrypted for"},
		"a key with a wrong sum": {key[:len(key)-1] + "Q", "is not an age identity: give the line AGE-SECRET-KEY-1… that `age-keygen` prints"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := agekey.Parse(c.text)
			if c.want != "" {
				require.EqualError(t, err, c.want)

				return
			}
			require.NoError(t, err)
			assert.Equal(t, key, got.String())
		})
	}
}
