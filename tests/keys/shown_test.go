// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package keys_test

import (
	"context"
	"fmt"
	"go/types"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/internal/vm"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// remoteChart returns a chart of a repository on this machine.
func remoteChart(repository string) spec.Chart {
	return spec.Chart{Repository: &repository, Name: spec.Ptr("one"), Version: spec.Ptr("1.0.0")}
}

// showDigest shows that a chart's archive must have the digest.
func showDigest(t *testing.T) {
	t.Helper()
	cache := manifests.Cache{Dir: t.TempDir()}
	chart := remoteChart("https://charts.example.com")
	require.NoError(t, os.WriteFile(cache.Path(chart), []byte("archive"), 0o600))
	chart.Digest = spec.Ptr("sha256:0000000000000000000000000000000000000000000000000000000000000000")
	_, err := cache.Load(context.Background(), chart)
	assert.ErrorContains(t, err, "has the digest sha256:")
}

// showCredentials shows that the repository is asked with user and password.
func showCredentials(t *testing.T) {
	t.Helper()
	var user, password string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ = r.BasicAuth()
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()
	chart := remoteChart(server.URL)
	chart.Username, chart.Password = spec.Ptr("somebody"), spec.Ptr(spec.NewSecret("word"))
	_, err := manifests.Fetcher{Client: server.Client()}.Fetch(context.Background(), chart)
	require.ErrorContains(t, err, "401")
	assert.Equal(t, []string{"somebody", "word"}, []string{user, password})
}

// showAllowReplace shows that an edit which replaces a VM is refused unless it is allowed.
func showAllowReplace(t *testing.T) {
	t.Helper()
	refuse := func(allowed ...string) error {
		var l check.List
		vm.Refuse("c1", vm.Identity{Host: "one", VMID: 100}, vm.Identity{Host: "two", VMID: 100}, allowed, &l)

		return l.Err("node c1")
	}
	require.Error(t, refuse())
	assert.NoError(t, refuse("host"))
}

// showInHooks shows that what the components run in hooks reads the setting: what comes of it is seen only where a
// cluster runs.
func showInHooks(field string) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		read, err := lifecycleReads()
		require.NoError(t, err)
		assert.Contains(t, read, field, "no component reads it")
	}
}

// lifecycleReads returns the fields of [spec.Lifecycle] that the code below the components selects, by name.
var lifecycleReads = sync.OnceValues(func() (map[string]bool, error) {
	const mode = packages.NeedName | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports
	loaded, err := packages.Load(&packages.Config{Mode: mode, Dir: "../.."}, "./components/internal/...")
	if err != nil {
		return nil, err
	}
	read := map[string]bool{}
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			return nil, fmt.Errorf("%s: %w", p.PkgPath, p.Errors[0])
		}
		for _, selection := range p.TypesInfo.Selections {
			from := selection.Recv()
			if pointer, ok := from.(*types.Pointer); ok {
				from = pointer.Elem()
			}
			if selection.Kind() == types.FieldVal && from.String() == reflect.TypeFor[spec.Lifecycle]().PkgPath()+".Lifecycle" {
				read[selection.Obj().Name()] = true
			}
		}
	}

	return read, nil
})
