// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/kubeapply"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// hosted serves manifests of ConfigMaps by path, to who has the password.
func hosted(t *testing.T, manifests map[string][]string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		names, ok := manifests[r.URL.Path]
		if !ok || r.Header.Get("Authorization") != "Bearer hunter2" {
			http.Error(w, "nothing here", http.StatusForbidden)

			return
		}
		for _, name := range names {
			fmt.Fprintf(w, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: one}\n", name)
		}
	}))
	t.Cleanup(server.Close)

	return server.URL
}

func idOf(name string) kubeapply.ObjectID { return kubeapply.ObjectID("v1/ConfigMap/one/" + name) }

func TestEditedURLsBringAndTakeWhatTheyHold(t *testing.T) {
	t.Parallel()
	at := hosted(t, map[string][]string{
		"/old": {"same", "gone", "elsewhere", "own"}, "/new": {"same", "fresh", "own"}, "/other": {"elsewhere", "moved"},
	})
	var said []string
	d := downloads{
		headers: map[string]spec.Secret{"Authorization": spec.NewSecret("Bearer hunter2")},
		urls:    []string{at + "/new", at + "/other"}, report: func(line string) { said = append(said, line) },
	}
	edit := manifestEdit{
		fetch: []string{at + "/new"}, gone: []string{at + "/lost", at + "/old"},
		remove: []kubeapply.ObjectID{idOf("moved"), idOf("inline")},
	}

	apply, remove, err := d.edit(t.Context(), edit, map[kubeapply.ObjectID]bool{idOf("own"): true})
	require.NoError(t, err)
	ids := make([]kubeapply.ObjectID, 0, len(apply))
	for _, o := range apply {
		ids = append(ids, o.ID)
	}
	assert.Equal(t, []kubeapply.ObjectID{idOf("same"), idOf("fresh")}, ids, "what the stack writes itself is its own")
	assert.Equal(t, []kubeapply.ObjectID{idOf("inline"), idOf("gone")}, remove)
	require.Len(t, said, 1)
	assert.Equal(t, fmt.Sprintf("what %s/lost held stays, since it cannot be fetched any more (%s/lost answers 403 Forbidden): "+
		"delete yourself what is no longer needed", at, at), said[0])
}

func TestNewURLsMustBeReachable(t *testing.T) {
	t.Parallel()
	at := hosted(t, nil)
	_, _, err := downloads{urls: []string{at + "/new"}}.edit(t.Context(), manifestEdit{fetch: []string{at + "/new"}}, nil)
	assert.EqualError(t, err, "fetching a manifest whose URL was edited: "+at+"/new answers 403 Forbidden\n"+
		"  control planes fetch it too; for the edit it has to be reachable from where Pulumi runs")
}
