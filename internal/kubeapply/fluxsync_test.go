// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kubeapply_test

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/kubeapply"
)

// flux answers for a repository and Kustomizations: each goes from one condition to the next with each
// look after it was asked.
type flux struct {
	mu    sync.Mutex
	there int // times that an object is asked for before any is there
	asked map[string]string
	says  map[string][]string // by name, "True message", each for one look, the last for ever
}

const collection = "/kustomizations"

func (f *flux) Delete(context.Context, string) error { return nil }

func (f *flux) Annotate(_ context.Context, path, key, value string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.there > 0 {
		f.there--

		return apierrors.NewNotFound(schema.GroupResource{}, path)
	}
	if f.asked == nil {
		f.asked = map[string]string{}
	}
	if key == "reconcile.fluxcd.io/requestedAt" {
		f.asked[path] = value
	}

	return nil
}

func (f *flux) Get(_ context.Context, path string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if path != collection {
		return []byte(f.object(path)), nil
	}
	var items []string
	for _, name := range slices.Sorted(maps.Keys(f.says)) {
		if strings.HasPrefix(name, collection) {
			items = append(items, f.object(name))
		}
	}

	return []byte(`{"items": [` + strings.Join(items, ",") + `]}`), nil
}

func (f *flux) object(path string) string {
	says := f.says[path]
	status, message, _ := strings.Cut(says[0], " ")
	handled := f.asked[path]
	if status == "old" { // what it said before it was asked
		status, handled = "True", "before"
	}
	if len(says) > 1 && f.asked[path] != "" {
		f.says[path] = says[1:]
	}

	return fmt.Sprintf(`{"metadata": {"name": %q, "generation": 2}, "spec": {"sourceRef": {"kind": "GitRepository", "name": "root"}},
		"status": {"observedGeneration": 2, "lastHandledReconcileAt": %q,
		"conditions": [{"type": "Ready", "status": %q, "message": %q}]}}`, filepath.Base(path), handled, status, message)
}

func follow(t *testing.T, f *flux, timeout time.Duration) ([]string, error) {
	t.Helper()
	var said []string
	err := kubeapply.WaitFluxSync(t.Context(), f,
		kubeapply.FluxSync{Repository: "/repository", Kustomizations: collection, Name: "root"},
		cluster.PollOptions{Timeout: timeout, Interval: time.Millisecond, Call: time.Second},
		func(line string) { said = append(said, line) })

	return said, err
}

func TestWaitFollowedWaitsForAFreshWord(t *testing.T) {
	t.Parallel()

	said, err := follow(t, &flux{there: 2, says: map[string][]string{
		"/repository":        {"old stored artifact of yesterday", "Unknown reconciling", "True stored artifact"},
		collection + "/root": {"old applied", "True applied"},
		collection + "/apps": {"old applied", "True applied"},
	}}, time.Minute)
	require.NoError(t, err)
	assert.Equal(t, []string{
		"waiting: GitRepository root: is not there",
		"waiting: GitRepository root: Flux has not looked at it yet", "waiting: GitRepository root: reconciling",
		"waiting: Kustomization apps: Flux has not looked at it yet",
		"waiting: Kustomization root: Flux has not looked at it yet",
		"Flux has applied what the repository says",
	}, said)
}

func TestWaitFollowedEndsWithWhatFluxSays(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		says map[string][]string
		want string
	}{
		"of the repository": {
			map[string][]string{"/repository": {"False failed to checkout: authentication required"}},
			"Flux does not follow the repository after 0s:\n  GitRepository root: failed to checkout: authentication required",
		},
		"of what it leads to, not of what waits for that": {
			map[string][]string{
				"/repository":        {"True stored"},
				collection + "/root": {"Unknown running health checks"},
				collection + "/apps": {"False decryption failed"},
			},
			"Flux does not follow the repository after 0s:\n  Kustomization apps: decryption failed",
		},
		"when nothing has failed": {
			map[string][]string{"/repository": {"True stored"}, collection + "/other": {"True"}, collection + "/root": {"Unknown reconciling"}},
			"Flux does not follow the repository after 0s:\n  Kustomization root: reconciling",
		},
	} {
		_, err := follow(t, &flux{says: c.says}, 50*time.Millisecond)
		assert.EqualError(t, err, c.want, name)
	}
}
