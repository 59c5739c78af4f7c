// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Fakes of the managers' command-line tools, as far as docs/credential-stores.md calls them. They keep secrets as files,
// take one from standard input alone, and fail as the genuine ones do.
const (
	fakeVault = `case "$1 $2" in
"kv put") [ "$4" = value=- ] || { echo "no data from standard input" >&2; exit 2; }; cat >"$STORE/$(basename "$3")" ;;
"kv get") cat "$STORE/$(basename "$4").${3#-field=}" 2>/dev/null || cat "$STORE/$(basename "$4")" 2>/dev/null || { echo "No value found at $4" >&2; exit 2; } ;;
*) exit 1 ;;
esac`
	fakeOnePassword = `case "$1 $2" in
"read op://"*) cat "$STORE/$(echo "$2" | cut -d/ -f4).$(basename "$2")" ;;
"document get") [ "$4 $5" = "--vault Infrastructure" ] && cat "$STORE/$3" 2>/dev/null || { echo "\"$3\" isn't an item" >&2; exit 1; } ;;
"document edit") [ -e "$STORE/$3" ] && [ "$4" = - ] && cat >"$STORE/$3" ;;
"document create") [ "$3 $4" = "- --title" ] && [ ! -e "$STORE/$5" ] && cat >"$STORE/$5" ;;
*) exit 1 ;;
esac`
	fakeBitwarden = `[ -n "$BW_SESSION" ] || { echo "Vault is locked." >&2; exit 1; }
case "$1 $2" in
"get password") cat "$STORE/$3.password" ;;
"get item") cat "$STORE/$3.item" 2>/dev/null || { echo "Not found." >&2; exit 1; } ;;
"get notes") jq -rj .notes <"$STORE/$3.item" ;;
"create item") base64 -d | jq '. + {id: ("id-of-" + .name)}' >"$STORE/new.$$"; mv "$STORE/new.$$" "$STORE/$(jq -r .name "$STORE/new.$$").item" ;;
"edit item") base64 -d >"$STORE/new.$$"; [ "$(jq -r .id "$STORE/new.$$")" = "$3" ] && mv "$STORE/new.$$" "$STORE/$(jq -r .name "$STORE/new.$$").item" ;;
"encode "*) base64 -w0 ;;
"sync "*) ;;
*) exit 1 ;;
esac`
)

// TestCredentialStores runs docs/credential-stores.md against a fake of each manager's tool: what Pulumi needs is read from
// it, and the cluster's credentials are kept in it, made first and edited when they are there.
func TestCredentialStores(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	one := s.up("small", s.small(alone()...))
	kubeconfig, err := os.ReadFile(one.kubeconfig)
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(s.root, "docs", "credential-stores.md"))
	require.NoError(t, err)
	token := s.must("sh", "-c", `printf %s "$PROXMOX_VE_API_TOKEN"`).stdout
	passphrase := s.must("sh", "-c", `printf %s "$PULUMI_CONFIG_PASSPHRASE"`).stdout

	for heading, c := range map[string]struct{ tool, script, passphrase, token, read string }{
		"HashiCorp Vault": {"vault", fakeVault, "pulumi.passphrase", "proxmox.token", "vault kv get -field=value secret/small-kubeconfig"},
		"1Password":       {"op", fakeOnePassword, "pulumi.passphrase", "proxmox.token", "op document get small-kubeconfig --vault Infrastructure"},
		"Bitwarden":       {"bw", fakeBitwarden, "pulumi.password", "proxmox.password", "bw get notes small-kubeconfig"},
	} {
		_, section, found := strings.Cut(string(text), "\n## "+heading+"\n")
		require.True(t, found, heading)
		section, _, _ = strings.Cut(section, "\n## ")
		assert.Contains(t, section, c.read)
		reading := regexp.MustCompile("(?s)```sh\n(.*?)```").FindStringSubmatch(section)
		writing := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(section)
		require.NotNil(t, reading, heading)
		require.NotNil(t, writing, heading)

		bin, store := t.TempDir(), t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(bin, c.tool), []byte("#!/bin/bash\nset -eu\nset -- \"$@\" '' ''\n"+c.script+"\n"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(store, c.passphrase), []byte(passphrase), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(store, c.token), []byte(token), 0o600))
		one.file = s.stackFile("small.yaml", alone("  talos-proxmox:lifecycle:\n",
			"  talos-proxmox:"+strings.ReplaceAll(strings.TrimSpace(writing[1]), "\n", "\n  ")+"\n  talos-proxmox:lifecycle:\n")...)
		with := func(script string) result {
			return s.must("bash", "-euo", "pipefail", "-c", "export PATH="+bin+":$PATH STORE="+store+" BW_SESSION=session\n"+script)
		}
		onFile := strings.NewReplacer("--stack small", "--stack small --non-interactive --config-file "+one.file)

		with("unset PULUMI_CONFIG_PASSPHRASE PROXMOX_VE_API_TOKEN\n" + onFile.Replace(reading[1]))
		files, err := os.ReadDir(store)
		require.NoError(t, err)
		assert.Len(t, files, 2, "a preview keeps nothing")
		for range 2 { // makes it, then edits it
			with(onFile.Replace("pulumi up --yes --skip-preview --stack small"))
			assert.Equal(t, string(kubeconfig), with(c.read).stdout+"\n", heading)
			// Another command, which keeps the same.
			edit(t, one.file, "    command: [", "    command: [env, ")
		}
	}
}
