// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/components/internal/controller"
)

// TestScriptsOfGiteaTakeTheKeyAway runs the scripts against a host that knows one token.
func TestScriptsOfGiteaTakeTheKeyAway(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("SKIPPED, curl is missing")
	}
	kept := map[string]bool{}
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "token good":
			w.WriteHeader(http.StatusUnauthorized)
		case r.Method == http.MethodPost:
			kept["/keys/42"] = true
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"id": 42, "key": "ssh-ed25519 AAAA"}`)
		case r.Method == http.MethodDelete && kept[r.URL.Path]:
			delete(kept, r.URL.Path)
			w.WriteHeader(http.StatusNoContent)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(host.Close)
	m, err := handOver(t, false, registeredAt("gitea", "ssh://git@git.example.com/lab/demo.git"))
	require.NoError(t, err)
	key, ok := m.Get("flux-registration")
	require.True(t, ok)
	run := func(script resource.PropertyKey, environment ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", key.Inputs[script].StringValue())
		cmd.Env = append(os.Environ(), append(environment, "URL="+host.URL+"/keys", "BODY={}", "PULUMI_COMMAND_STDOUT=42")...)
		out, err := cmd.CombinedOutput()

		return string(out), err
	}

	said, err := run("create", "TOKEN=bad")
	require.Error(t, err, said)
	said, err = run("create", "TOKEN=good")
	require.NoError(t, err, said)
	assert.Equal(t, "42\n", said)
	said, err = run("update", "TOKEN=other")
	require.NoError(t, err, said)
	assert.Equal(t, "42", said, "another token is another token only")

	said, err = run("delete", "TOKEN=old")
	require.Error(t, err)
	assert.Contains(t, said, "the git host answers 401 to the token of the last up: run up with the new one first, or give it as TALOS_PROXMOX_GIT_TOKEN")
	assert.Len(t, kept, 1)
	said, err = run("delete", "TOKEN=old", controller.TokenEnv+"=good")
	require.NoError(t, err, said)
	assert.Empty(t, kept)
	said, err = run("delete", "TOKEN=good")
	assert.NoError(t, err, said+": what is gone is gone")
}
