// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"fmt"
	"slices"

	"github.com/talos-proxmox/talos-proxmox/internal/kubeapply"
	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// downloads fetches the manifests that control planes fetch too. When their URLs are edited, what they hold is
// fetched here.
type downloads struct {
	fetcher manifests.Fetcher
	headers map[string]spec.Secret
	urls    []string
	report  func(string)
}

// edit returns what to apply of those that came, and what to delete: of what the edit deletes and of those
// that went, what no other manifest has. Objects in own are written by the stack itself.
func (d downloads) edit(
	ctx context.Context, edit manifestEdit, own map[kubeapply.ObjectID]bool,
) (apply []kubeapply.ManifestObject, remove []kubeapply.ObjectID, err error) {
	has := map[kubeapply.ObjectID]bool{}
	for _, url := range d.urls {
		found, err := d.fetcher.Manifest(ctx, url, d.headers)
		if err != nil {
			return nil, nil, fmt.Errorf("fetching a manifest whose URL was edited: %w\n"+
				"  control planes fetch it too; for the edit it has to be reachable from where Pulumi runs", err)
		}
		for _, o := range found {
			id := kubeapply.ObjectID(o.ID)
			// The first counts, as with Talos.
			if slices.Contains(edit.fetch, url) && !own[id] && !has[id] {
				apply = append(apply, kubeapply.ManifestObject{ID: id, JSON: o.JSON})
			}
			has[id] = true
		}
	}
	for _, id := range edit.remove {
		if !has[id] {
			remove = append(remove, id)
		}
	}
	for _, url := range edit.gone {
		found, err := d.fetcher.Manifest(ctx, url, d.headers)
		if err != nil {
			d.report(fmt.Sprintf("what %s held stays, since it cannot be fetched any more (%v): "+
				"delete yourself what is no longer needed", url, err))

			continue
		}
		for _, o := range found {
			if id := kubeapply.ObjectID(o.ID); !has[id] && !own[id] && !o.Kept {
				remove = append(remove, id)
				has[id] = true // once is enough
			}
		}
	}

	return apply, remove, nil
}
