// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/talos-proxmox/talos-proxmox/internal/kubeapply"
	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
)

// fetchedMark is in place of the digest of what control planes fetch from a URL.
const fetchedMark = "fetched"

// retainedMark follows the digest of an object that its chart wants to stay.
const retainedMark = " kept"

// manifestEdit holds what becomes of objects when the manifests are edited.
type manifestEdit struct {
	apply, remove []kubeapply.ObjectID
	// stay are objects without a manifest that nobody deletes, with the reason.
	stay map[kubeapply.ObjectID]string
	// fetch and gone are the URLs of manifests that came and went.
	fetch, gone []string
}

// manifestEditOf compares the objects that were with those that are to be.
func manifestEditOf(before, after map[string]string) manifestEdit {
	edit := manifestEdit{stay: map[kubeapply.ObjectID]string{}}
	for _, id := range slices.Sorted(maps.Keys(after)) {
		switch {
		case before[id] == after[id]:
		case after[id] == fetchedMark:
			edit.fetch = append(edit.fetch, id)
		default:
			edit.apply = append(edit.apply, kubeapply.ObjectID(id))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(before)) {
		if _, still := after[id]; still {
			continue
		}
		if before[id] == fetchedMark {
			edit.gone = append(edit.gone, id)

			continue
		}
		gone := kubeapply.ObjectID(id)
		switch why := gone.Stays(); {
		case strings.HasSuffix(before[id], retainedMark):
			edit.stay[gone] = "its chart says so"
		case why != "":
			edit.stay[gone] = why
		default:
			edit.remove = append(edit.remove, gone)
		}
	}

	return edit
}

// lines returns what becomes of the objects, a line each.
func (e manifestEdit) lines() []string {
	var all []string
	for _, id := range e.apply {
		all = append(all, fmt.Sprintf("%s will be applied", id))
	}
	for _, url := range e.fetch {
		all = append(all, fmt.Sprintf("%s will be fetched, and what it holds applied", url))
	}
	for _, url := range e.gone {
		all = append(all, fmt.Sprintf("what %s held will be deleted where no other manifest has it, "+
			"but for kinds, namespaces and volumes", url))
	}
	for _, id := range e.remove {
		all = append(all, fmt.Sprintf("%s will be deleted, since its manifest is gone", id))
	}
	for _, id := range slices.Sorted(maps.Keys(e.stay)) {
		all = append(all, fmt.Sprintf("%s stays, since %s: delete it yourself when it is no longer needed", id, e.stay[id]))
	}

	return all
}

// dayZeroObjects holds the day-0 objects, which become known during the run.
type dayZeroObjects struct {
	mu  sync.Mutex
	all []manifests.Object
}

// set reads the objects and returns their digests, and a mark for each URL.
func (l *dayZeroObjects) set(list []machineconfig.Manifest, urls []string, key []byte) (map[string]string, error) {
	all, err := manifests.Objects(list)
	if err != nil {
		return nil, err
	}
	digests := make(map[string]string, len(all)+len(urls))
	for _, url := range urls {
		digests[url] = fetchedMark
	}
	for _, o := range all {
		digests[o.ID] = o.Digest(key)
		if o.Kept {
			digests[o.ID] += retainedMark
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = all

	return digests, nil
}

// of returns the objects with these ids, in the order of their manifests.
func (l *dayZeroObjects) of(ids []kubeapply.ObjectID) []kubeapply.ManifestObject {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []kubeapply.ManifestObject
	for _, o := range l.all {
		if id := kubeapply.ObjectID(o.ID); slices.Contains(ids, id) {
			found = append(found, kubeapply.ManifestObject{ID: id, JSON: o.JSON})
		}
	}

	return found
}

// ids returns the ids of all objects.
func (l *dayZeroObjects) ids() map[kubeapply.ObjectID]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := make(map[kubeapply.ObjectID]bool, len(l.all))
	for _, o := range l.all {
		known[kubeapply.ObjectID(o.ID)] = true
	}

	return known
}
