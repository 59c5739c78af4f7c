// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package etcd

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sealed encrypts a text for somebody.
func sealed(t *testing.T, text string, to *age.X25519Identity) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := age.Encrypt(&out, to.Recipient())
	require.NoError(t, err)
	_, err = io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())

	return out.Bytes()
}

func TestSnapshotsAreOpenedWithTheirKey(t *testing.T) {
	t.Parallel()
	mine, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	other, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	dir := t.TempDir()
	key, wrong := filepath.Join(dir, "key.txt"), filepath.Join(dir, "public.txt")
	require.NoError(t, os.WriteFile(key, []byte("# created\n"+mine.String()+"\n"), 0o600))
	require.NoError(t, os.WriteFile(wrong, []byte(mine.Recipient().String()), 0o600))
	whole := sealed(t, strings.Repeat("data", 40000), mine)

	for name, c := range map[string]struct {
		content   []byte
		key, want string
	}{
		"as tpx writes it":           {content: []byte("data")},
		"encrypted":                  {content: sealed(t, "data", mine), key: key},
		"empty":                      {want: "s.snap is no snapshot: it is empty"},
		"encrypted, without a key":   {content: whole, want: "s.snap is encrypted: name the file with the age key that opens it, --age-key FILE"},
		"a key that nobody needs":    {content: []byte("data"), key: key, want: "s.snap is not encrypted with age: leave --age-key out"},
		"the public half":            {content: whole, key: wrong, want: "public.txt is not an age identity: give the line AGE-SECRET-KEY-1… that `age-keygen` prints"},
		"for somebody else":          {content: sealed(t, "data", other), key: key, want: "s.snap is not encrypted for " + mine.Recipient().String() + " (key.txt)"},
		"cut off at its start":       {content: whole[:300], key: key, want: "opening s.snap: "},
		"compressed":                 {content: []byte(compressed + "data"), want: "s.snap holds a compressed snapshot: take it apart with `zstd -d` first"},
		"compressed, then encrypted": {content: sealed(t, compressed+"data", mine), key: key, want: "s.snap holds a compressed snapshot"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := openSnapshot("/somewhere/s.snap", c.key, bytes.NewReader(c.content))
			if c.want != "" {
				require.ErrorContains(t, err, c.want)

				return
			}
			require.NoError(t, err)
			text, err := io.ReadAll(got)
			require.NoError(t, err)
			assert.Equal(t, "data", string(text))
		})
	}
}
