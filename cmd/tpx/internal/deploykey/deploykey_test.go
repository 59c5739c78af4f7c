// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package deploykey_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/deploykey"
	"github.com/talos-proxmox/talos-proxmox/internal/deploykeyenv"
)

const (
	public  = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
	another = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJxzvR0mFVnRWjuvqRa7vCzmBLnPPvWvUCUrwGtBQpzG"
)

// stored holds a key as the host stores it.
type stored struct {
	ID       int64  `json:"id"`
	Title    string `json:"title"`
	Key      string `json:"key"`
	ReadOnly bool   `json:"read_only"`
}

// gitHost answers as Gitea does for one repository, fifty keys a page, to the token "good".
type gitHost struct {
	keys []stored
	next int64
}

func (h *gitHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const path = "/api/v1/repos/lab/demo/keys"
	rest, known := strings.CutPrefix(r.URL.Path, path)
	switch {
	case r.Header.Get("Authorization") != "token good":
		w.WriteHeader(http.StatusUnauthorized)
	case !known:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodGet:
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		from := min(len(h.keys), (page-1)*50)
		_ = json.NewEncoder(w).Encode(h.keys[from:min(len(h.keys), from+50)])
	case r.Method == http.MethodPost:
		var k stored
		_ = json.NewDecoder(r.Body).Decode(&k)
		h.next++
		k.ID = h.next
		h.keys = append(h.keys, k)
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(k)
	case r.Method == http.MethodDelete:
		for i, k := range h.keys {
			if rest == fmt.Sprintf("/%d", k.ID) {
				h.keys = append(h.keys[:i:i], h.keys[i+1:]...)
			}
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// serve starts a git host and returns it with a key for it.
func serve(t *testing.T) (*gitHost, deploykey.Key) {
	t.Helper()
	h := &gitHost{next: 41}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)

	return h, deploykey.Key{
		API: server.URL + "/api/v1", Repository: "lab/demo", Title: "talos-proxmox test", Public: public + "\n", Token: "good",
	}
}

func TestAKeyIsAddedOnceAndRemovedOnce(t *testing.T) {
	t.Parallel()
	h, k := serve(t)
	for range 2 { // an up that was cut short says it again
		id, err := k.Add(t.Context())
		require.NoError(t, err)
		assert.Equal(t, int64(42), id)
	}
	assert.Equal(t, []stored{{ID: 42, Title: "talos-proxmox test", Key: k.Public, ReadOnly: true}}, h.keys)
	for range 2 {
		require.NoError(t, k.Remove(t.Context()))
	}
	assert.Empty(t, h.keys)
}

func TestAKeyIsFoundOnALaterPageAndByNothingButItself(t *testing.T) {
	t.Parallel()
	h, k := serve(t)
	for range 50 {
		h.keys = append(h.keys, stored{ID: 1, Title: k.Title, Key: another, ReadOnly: true})
	}
	h.keys = append(h.keys, stored{ID: 7, Title: "renamed by hand", Key: public + " somebody@example.com", ReadOnly: true})
	id, err := k.Add(t.Context())
	require.NoError(t, err)
	assert.Equal(t, int64(7), id)
	require.NoError(t, k.Remove(t.Context()))
	assert.Len(t, h.keys, 50)
}

func TestWhatTheHostRefusesIsExplainedWithoutTheToken(t *testing.T) {
	t.Parallel()
	h, k := serve(t)
	refused := k
	refused.Token = "b4d"
	_, err := refused.Add(t.Context())
	require.ErrorContains(t, err, "the git host answers 401 to the token: run up with one that may administer the keys of "+
		"repository lab/demo (gitops.git.auth.register.token), or give it as TALOS_PROXMOX_GIT_TOKEN")
	assert.NotContains(t, err.Error(), "b4d")
	require.Error(t, refused.Remove(t.Context()))

	missing := k
	missing.Repository = "lab/other"
	_, err = missing.Add(t.Context())
	require.EqualError(t, err, "the git host knows no repository lab/other, or does not show it to the token")

	h.keys = []stored{{ID: 3, Title: "by hand", Key: public}}
	_, err = k.Add(t.Context())
	require.ErrorContains(t, err, `repository lab/demo has the deploy key already, as "by hand", and lets it write`)

	away := k
	away.API = "http://127.0.0.1:9/api/v1"
	_, err = away.Add(t.Context())
	require.ErrorContains(t, err, "listing deploy keys: http://127.0.0.1:9/api/v1 does not answer: ")
}

func TestTheEnvironmentNamesTheKey(t *testing.T) {
	t.Parallel()
	variables := map[string]string{
		deploykeyenv.API: "https://git.example.com/api/v1", deploykeyenv.Repository: "lab/demo",
		deploykeyenv.Title: "title", deploykeyenv.Key: public, deploykeyenv.LastToken: "last",
	}
	k, err := deploykey.FromEnvironment(func(name string) string { return variables[name] })
	require.NoError(t, err)
	assert.Equal(t, "last", k.Token)
	variables[deploykeyenv.Token] = "new"
	k, err = deploykey.FromEnvironment(func(name string) string { return variables[name] })
	require.NoError(t, err)
	assert.Equal(t, "new", k.Token)
	delete(variables, deploykeyenv.Key)
	_, err = deploykey.FromEnvironment(func(name string) string { return variables[name] })
	require.EqualError(t, err, "TALOS_PROXMOX_GIT_KEY is not set: this command is run by Pulumi")
}
