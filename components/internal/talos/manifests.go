// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/components/internal/stash"
	"github.com/talos-proxmox/talos-proxmox/internal/kubeapply"
	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
)

// registerManifests registers what the day-0 manifests hold, object by object, and the URLs of those that
// control planes fetch. Talos creates what is missing and never edits or deletes: so that an edit of a
// manifest takes effect, its objects are applied through the Kubernetes API when they change, and deleted
// when they go. A new cluster has them from Talos. It comes before the ready gate, for an edit may be what
// makes an unwell cluster well again. It returns a fingerprint of all objects too.
func registerManifests(
	b *Build, list pulumi.Output, before []pulumi.Resource,
) (pulumi.Resource, pulumi.StringOutput, error) {
	objects := &dayZeroObjects{}
	urls, err := manifests.ExtraURLs(b.Config)
	if err != nil {
		return nil, pulumi.StringOutput{}, fmt.Errorf("cluster %q: %w", b.Name, err)
	}
	digests := pulumi.Unsecret(pulumi.All(list, b.Secrets.Bundle).ApplyT(func(v []any) (map[string]string, error) {
		all, listed := v[0].([]machineconfig.Manifest)
		bundle, ok := v[1].(*secrets.Bundle)
		if !listed || !ok {
			return nil, fmt.Errorf("cluster %q: the cluster's secrets are missing", b.Name)
		}

		return objects.set(all, urls, []byte(bundle.Cluster.Secret))
	})).(pulumi.StringMapOutput)
	made, err := stash.RememberInputs(b.Ctx, b.Name+"-manifests", digests, stash.On[map[string]string]{
		Plan: func(step hook.Step, was, now map[string]string) error {
			if !b.Ctx.DryRun() {
				return nil // at up the edit says it itself
			}
			for _, line := range manifestEditOf(was, now).lines() {
				step.Report(line)
			}

			return nil
		},
		Update: func(step hook.Step, was, now map[string]string) error {
			return editObjects(b, step, objects, urls, manifestEditOf(was, now))
		},
	}, pulumi.Parent(b.Parent), pulumi.DependsOn(before))
	if err != nil {
		return nil, pulumi.StringOutput{}, err
	}
	all := digests.ApplyT(func(plain map[string]string) (string, error) { return stash.Fingerprint(plain) })

	return made, all.(pulumi.StringOutput), nil
}

// editObjects brings the cluster's objects in line, as soon as the Kubernetes API serves.
func editObjects(b *Build, step hook.Step, objects *dayZeroObjects, urls []string, edit manifestEdit) error {
	ctx, limit := b.Ctx.Context(), pollOptions(b.Config.Lifecycle, b.Config.Lifecycle.ReadyTimeout)
	remote, err := b.APIs.open(ctx)
	if err != nil {
		return err
	}
	serving := b.Cluster
	serving.SkipKubernetes = true
	checker := rollout.HealthChecker{Access: remote, Cluster: serving, Poll: limit, Report: b.reporting(step)}
	if err := checker.Ready(ctx); err != nil {
		return fmt.Errorf("%w\n  %s", err, howToReach(b.Config))
	}
	apply, remove := objects.of(edit.apply), edit.remove
	if len(edit.fetch)+len(edit.gone) > 0 {
		extra := downloads{
			fetcher: manifests.Fetcher{Client: manifests.ClientTrusting(b.Config.Talos.TrustedRoots)},
			headers: b.Config.Manifests.ExtraHeaders, urls: urls, report: b.reporting(step),
		}
		more, rest, err := extra.edit(ctx, edit, objects.ids())
		if err != nil {
			return fmt.Errorf("cluster %q: %w", b.Cluster.Name, err)
		}
		apply, remove = append(apply, more...), rest
	}
	err = kubeapply.Manifests{Access: remote, Poll: limit, Report: b.reporting(step)}.Run(ctx, apply, remove)
	if err != nil {
		return fmt.Errorf("cluster %q: %w", b.Cluster.Name, err)
	}

	return nil
}
