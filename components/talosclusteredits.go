// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/kubeapply"
	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
)

// editManifests registers what the day-0 manifests hold, object by object, and the URLs of those that
// control planes fetch. Talos creates what is missing and never edits or deletes: so that an edit of a
// manifest takes effect, its objects are applied through the Kubernetes API when they change, and deleted
// when they go. A new cluster has them from Talos. It comes before the ready gate, for an edit may be
// what makes an unwell cluster well again.
func (c *TalosCluster) editManifests(
	ctx *pulumi.Context, name string, list pulumi.Output, before []pulumi.Resource,
) (*pulumi.Stash, pulumi.StringOutput, error) {
	objects := &lateObjects{}
	urls, err := manifests.ExtraURLs(c.config)
	if err != nil {
		return nil, pulumi.StringOutput{}, fmt.Errorf("cluster %q: %w", name, err)
	}
	digests := pulumi.Unsecret(pulumi.All(list, c.secrets.bundle).ApplyT(func(v []any) (map[string]string, error) {
		all, listed := v[0].([]machineconfig.Manifest)
		bundle, ok := v[1].(*secrets.Bundle)
		if !listed || !ok {
			return nil, fmt.Errorf("cluster %q: the cluster's secrets are missing", name)
		}

		return objects.set(all, urls, []byte(bundle.Cluster.Secret))
	}))
	say, err := registerPlanHook(ctx, TalosClusterType, name, "manifests-plan", sayManifests(ctx))
	if err != nil {
		return nil, pulumi.StringOutput{}, err
	}
	edit, err := registerHook(ctx, TalosClusterType, name, "manifests", c.editObjects(ctx, objects, urls))
	if err != nil {
		return nil, pulumi.StringOutput{}, err
	}
	stash, err := pulumi.NewStash(ctx, name+"-manifests", &pulumi.StashArgs{Input: digests},
		pulumi.Parent(c), pulumi.DependsOn(before),
		pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeUpdate: []*pulumi.ResourceHook{say, edit}}))
	if err != nil {
		return nil, pulumi.StringOutput{}, fmt.Errorf("registering the day-0 objects of cluster %q: %w", name, err)
	}
	all := digests.ApplyT(func(plain any) (string, error) { return fingerprint(plain) })

	return stash, all.(pulumi.StringOutput), nil //nolint:forcetypeassert // the function's type
}

// editObjects is the hook that brings the cluster's objects in line, as soon as the Kubernetes API serves.
func (c *TalosCluster) editObjects(ctx *pulumi.Context, objects *lateObjects, urls []string) pulumi.ResourceHookFunction {
	poll := cluster.DefaultPollOptions(duration(c.config.Lifecycle.ReadyTimeout, 15*time.Minute))

	return func(args *pulumi.ResourceHookArgs) error {
		edit := manifestEditOf(args.OldInputs, args.NewInputs)
		remote, err := c.secrets.access.open(ctx.Context())
		if err != nil {
			return err
		}
		report := reportTo(ctx, args.URN)
		serving := c.secrets.access.cluster
		serving.SkipKubernetes = true
		look := rollout.HealthChecker{Access: remote, Cluster: serving, Poll: poll, Report: report}
		if err := look.Ready(ctx.Context()); err != nil {
			return fmt.Errorf("%w\n  %s", err, c.howToReach())
		}
		apply, remove := objects.of(edit.apply), edit.remove
		if len(edit.fetch)+len(edit.gone) > 0 {
			extra := downloads{
				fetcher: manifests.Fetcher{Client: manifests.ClientTrusting(c.config.Talos.TrustedRoots)},
				headers: c.config.Manifests.ExtraHeaders, urls: urls, report: report,
			}
			more, rest, err := extra.edit(ctx.Context(), edit, objects.ids())
			if err != nil {
				return fmt.Errorf("cluster %q: %w", c.secrets.access.cluster.Name, err)
			}
			apply, remove = append(apply, more...), rest
		}
		err = kubeapply.Manifests{Access: remote, Poll: poll, Report: report}.Run(ctx.Context(), apply, remove)
		if err != nil {
			return fmt.Errorf("cluster %q: %w", c.secrets.access.cluster.Name, err)
		}

		return nil
	}
}

// sayManifests says at preview what becomes of objects; at up the edit says it itself.
func sayManifests(ctx *pulumi.Context) pulumi.ResourceHookFunction {
	return func(args *pulumi.ResourceHookArgs) error {
		if !ctx.DryRun() {
			return nil
		}
		report := reportTo(ctx, args.URN)
		for _, line := range manifestEditOf(args.OldInputs, args.NewInputs).lines() {
			report(line)
		}

		return nil
	}
}

// fetchedMark stands for the digest of what control planes fetch from a URL.
const fetchedMark = "fetched"

// keptMark marks, behind its digest, an object that its chart wants to stay.
const keptMark = " kept"

// manifestEdit is what an edit of the manifests means for objects.
type manifestEdit struct {
	apply, remove []kubeapply.ObjectID
	// stay are objects without a manifest that nobody deletes, with the reason.
	stay map[kubeapply.ObjectID]string
	// fetch and gone are the URLs of manifests that came and went.
	fetch, gone []string
}

// manifestEditOf compares the objects that were with those that are to be.
func manifestEditOf(was, now resource.PropertyMap) manifestEdit {
	before, after := objectsOf(was), objectsOf(now)
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
		case strings.HasSuffix(before[id], keptMark):
			edit.stay[gone] = "its chart says so"
		case why != "":
			edit.stay[gone] = why
		default:
			edit.remove = append(edit.remove, gone)
		}
	}

	return edit
}

// lines say what becomes of the objects.
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
		all = append(all, fmt.Sprintf("%s stays, since %s: delete it yourself when nobody needs it", id, e.stay[id]))
	}

	return all
}

// objectsOf are the digests in a Stash's input, by object.
func objectsOf(inputs resource.PropertyMap) map[string]string {
	found := map[string]string{}
	input := inputs["input"]
	for input.IsSecret() {
		input = input.SecretValue().Element
	}
	if !input.IsObject() {
		return found
	}
	for id, digest := range input.ObjectValue() {
		if digest.IsString() {
			found[string(id)] = digest.StringValue()
		}
	}

	return found
}

// lateObjects are the day-0 objects, which become known during the run.
type lateObjects struct {
	mu  sync.Mutex
	all []manifests.Object
}

// set reads the objects and returns their digests, and a mark for each URL.
func (l *lateObjects) set(list []machineconfig.Manifest, urls []string, key []byte) (map[string]string, error) {
	all, err := manifests.Objects(list)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the manifest
	}
	digests := make(map[string]string, len(all)+len(urls))
	for _, url := range urls {
		digests[url] = fetchedMark
	}
	for _, o := range all {
		digests[o.ID] = o.Digest(key)
		if o.Kept {
			digests[o.ID] += keptMark
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = all

	return digests, nil
}

// of are those of the objects, in the order of their manifests.
func (l *lateObjects) of(ids []kubeapply.ObjectID) []kubeapply.ManifestObject {
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

// ids are all of them.
func (l *lateObjects) ids() map[kubeapply.ObjectID]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := make(map[kubeapply.ObjectID]bool, len(l.all))
	for _, o := range l.all {
		known[kubeapply.ObjectID(o.ID)] = true
	}

	return known
}
